"""Models from a stream: fenchel beside scikit-learn's SGDClassifier, one pass over the samples; processor time.

    python -m benchmarks.stream [--data-dir DIR] [--rows ROW ...] [--repeats 5]

The rows, on generated text-like data, or on imdb and others in a folder:

pass     one pass of logistic regression at the best lam of a grid, at once and in 100 pieces by partial_fit, in turns:
         median seconds and the mean accuracy on other samples;
powers   the same for p = 1.8;
auto     lam="auto" beside each lam of its family: error on other samples above that of the best, and time;
orders   the same errors in twenty orders of the samples, and how many lams learnt, the mean over the samples; also of
         generated texts, and of normal samples with one label in a hundred, with a quarter of the labels turned, with
         weights that turn by a right angle, and with noisy targets;
flat     a long stream of generated rows: rows per second beside a plain epoch of dual ascent in memory (all samples, no
         momentum), and the memory used.
"""

from __future__ import annotations

import gc
import resource
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

import click
import numpy as np
import scipy.sparse as sp
from rich.console import Console
from rich.table import Table
from sklearn.linear_model import SGDClassifier

import fenchel as fl
from benchmarks.datasets import from_folder
from benchmarks.interpolation import text_like
from fenchel.solver import learner as learners
from fenchel.solver.learner import Learner
from fenchel.steps import SDCA, Start

LAMS = (1e-6, 3e-6, 1e-5, 3e-5, 1e-4, 3e-4)
PIECES = 100
GENERATED = ("texts", "rare", "noise", "drift", "targets")


def split(name: str, folder: Path | None, cache: Path, seed: int) -> tuple[Any, np.ndarray, Any, np.ndarray]:
    """Half of the samples in random order, and the other half."""
    if folder is None:
        X = text_like(20_000, 30_000, 75, 3)
        rng = np.random.default_rng(4)
        y = np.sign(X @ rng.normal(size=X.shape[1]) + 0.3 * rng.normal(size=X.shape[0]))
    else:
        data = from_folder(folder, name, cache)
        X, y = data.X, data.y
    order = np.random.default_rng(seed).permutation(X.shape[0])
    half = len(order) // 2
    return X[order[:half]], y[order[:half]], X[order[half:]], y[order[half:]]


def in_pieces(model: Any, X: Any, y: np.ndarray) -> Any:
    for rows in np.array_split(np.arange(X.shape[0]), PIECES):
        model.partial_fit(X[rows], y[rows], classes=[-1.0, 1.0])
    return model


def one_pass(repeats: int, parts: tuple[Any, ...], p: float, title: str) -> Table:
    X, y, other, labels = parts
    ours = lambda lam: fl.LpClassifier(p=p, lam=lam)  # noqa: E731
    theirs = lambda lam: SGDClassifier(loss="log_loss", alpha=lam, max_iter=1, tol=None, random_state=0)  # noqa: E731
    fits: dict[str, Callable[[float], Any]] = {
        "fenchel, at once": lambda lam: ours(lam).partial_fit(X, y, classes=[-1.0, 1.0]),
        "SGDClassifier, at once": lambda lam: theirs(lam).fit(X, y),
        f"fenchel, {PIECES} pieces": lambda lam: in_pieces(ours(lam), X, y),
        f"SGDClassifier, {PIECES} pieces": lambda lam: in_pieces(theirs(lam), X, y),
    }
    seconds: dict[str, list[float]] = {name: [] for name in fits}
    scores = {name: np.zeros(len(LAMS)) for name in fits}
    for _ in range(repeats):
        for k, lam in enumerate(LAMS):
            for name, fit in fits.items():
                start = time.process_time()
                model = fit(lam)
                seconds[name].append(time.process_time() - start)
                scores[name][k] = model.score(other, labels)
    table = Table("", "milliseconds", "beside fenchel", "best accuracy", "lam", title=title)
    for k, name in enumerate(fits):
        first = median(seconds[list(fits)[k // 2 * 2]])
        best = int(scores[name].argmax())
        each = median(seconds[name])
        table.add_row(name, f"{1e3 * each:.1f}", f"{each / first:.2f}", f"{scores[name][best]:.4f}", f"{LAMS[best]:g}")
    return table


def automatic(repeats: int, parts: tuple[Any, ...], title: str) -> Table:
    X, y, other, labels = parts

    def run(**options: Any) -> tuple[float, fl.StreamResult]:
        took, result = [], None
        for _ in range(repeats):
            start = time.process_time()
            result = fl.stream([(X, y)], intercept=True, **options)
            took.append(time.process_time() - start)
        assert result is not None
        return median(took), result

    table = Table("loss", "lam", "error above the best lam's", "its time / one lam's", title=title)
    for loss in (fl.losses.Logistic(), fl.losses.Hinge()):
        seconds, chosen = run(loss=loss, lam="auto")
        alone = [run(loss=loss, penalty=fl.penalties.L2(lam)) for lam in chosen.family]
        error = lambda r: float(np.mean(np.sign(other @ r.w + r.b) != labels))  # noqa: E731
        excess = error(chosen) - min(error(result) for _, result in alone)
        table.add_row(
            repr(loss), f"{chosen.lam:.2g}", f"{100 * excess:.2f} %", f"{seconds / median(t for t, _ in alone):.2f}"
        )
    return table


def generated(kind: str, seed: int, n: int = 20_000, d: int = 50) -> tuple[Any, ...]:
    """Samples of a stream, and others from its end."""
    rng = np.random.default_rng(seed)
    X: Any = text_like(2 * n, n, 60, seed) if kind == "texts" else rng.normal(size=(2 * n, d))
    w, turned = rng.normal(size=X.shape[1]), rng.normal(size=X.shape[1])
    angle = np.minimum(np.arange(2 * n) / n, 1.0) * np.pi / 2.0 if kind == "drift" else np.zeros(2 * n)
    z = np.cos(angle) * (X @ w) + np.sin(angle) * (X @ turned)
    if kind == "targets":
        y = z + 3.0 * rng.standard_t(3.0, size=2 * n) + 2.0
    elif kind == "noise":
        y = np.sign(z) * np.where(rng.random(2 * n) < 0.25, -1.0, 1.0)
    else:
        z += 0.5 * rng.normal(size=2 * n)
        y = np.sign(z - np.quantile(z, 0.99) if kind == "rare" else z)
    return X[:n], y[:n], X[n:], y[n:]


def errors_of_family(parts: tuple[Any, ...], loss: fl.losses.Loss) -> tuple[float, float, float, float]:
    """Error on other samples of the chosen lam, of the one chosen if all go on, of the best; lams that learnt."""
    X, y, other, targets = parts

    def error(result: fl.StreamResult) -> float:
        scores = other @ result.w + result.b
        wrong = np.sign(scores) != targets if loss.is_classification else loss.value(scores, targets)
        return float(np.mean(wrong))

    chosen = fl.stream([(X, y)], loss, intercept=True)
    alone = {lam: error(fl.stream([(X, y)], loss, fl.penalties.L2(lam), intercept=True)) for lam in chosen.family}
    learnt = sum(chosen.dropped.get(lam, len(y)) for lam in chosen.family) / len(y)
    with patch.object(learners, "TUNING", replace(learners.TUNING, clear=np.inf)):
        kept = fl.stream([(X, y)], loss, intercept=True)
    return alone[chosen.lam], alone[kept.lam], min(alone.values()), learnt


def orders(names: list[str], folder: Path | None, cache: Path, count: int = 20) -> Table:
    table = Table("", "loss", "lams that learnt", "above the best lam's", "most", "above that without", "most")
    streams = {name: (lambda seed, name=name: split(name, folder, cache, seed)) for name in names}
    streams |= {kind: (lambda seed, kind=kind: generated(kind, seed)) for kind in GENERATED}
    for name, parts in streams.items():
        losses = (fl.losses.Logistic(), fl.losses.Hinge())
        for loss in (fl.losses.Squared(), fl.losses.Huber(1.0)) if name == "targets" else losses:
            found = np.array([errors_of_family(parts(seed), loss) for seed in range(count)])
            scale = 100.0 / (found[:, 2] if name == "targets" else 1.0)  # of a regression as parts of the least
            above, without = scale * (found[:, 0] - found[:, 2]), scale * (found[:, 0] - found[:, 1])
            values = [f"{v:.2f} %" for v in (above.mean(), above.max(), without.mean(), without.max())]
            table.add_row(name, repr(loss), f"{found[:, 3].mean():.2f}", *values)
    return table


def flat(rows: int, d: int = 30_000, size: int = 20_000) -> Table:
    """Rows of 75 nonzeros, one in each of 75 ranges of columns; each piece is generated anew from a few blocks."""
    rng = np.random.default_rng(0)
    weights = rng.normal(size=d)
    width = d // 75
    first = (width * np.arange(75)).astype(np.int32)
    blocks = [rng.integers(0, width, size=(size, 75)).astype(np.int32) for _ in range(4)]

    def piece(k: int) -> tuple[sp.csr_array, np.ndarray]:
        indices = (blocks[k % 4] + 7919 * k % width) % width + first
        data = np.random.default_rng(k).random(indices.size).astype(np.float32)
        X = sp.csr_array((data, indices.ravel(), np.arange(0, indices.size + 1, 75, dtype=np.int32)), shape=(size, d))
        return X, np.where(X @ weights > 0.0, 1.0, -1.0)

    def pieces() -> Iterator[tuple[sp.csr_array, np.ndarray]]:
        for k in range(rows // size):
            yield piece(k)

    parts = [piece(k) for k in range(10)]
    X, y = sp.vstack([part for part, _ in parts], format="csr"), np.concatenate([labels for _, labels in parts])
    problem = fl.Problem(X, y, fl.losses.Logistic(), fl.penalties.L2(1e-5))
    epoch = plain_epoch(problem) / X.shape[0]
    del parts, X, y, problem
    gc.collect()
    learning, begun, before, most = 0.0, time.process_time(), 0.0, 0.0
    learner = Learner(fl.losses.Logistic(), fl.penalties.L2(1e-5))
    for k, (A, labels) in enumerate(pieces()):
        start = time.process_time()
        learner.learn(A, labels)
        learning += time.process_time() - start
        used = _resident()
        before, most = (used, used) if k == 2 else (before, max(most, used))
    table = Table("", "", title=f"{learner.n_samples} rows of 75 entries")
    table.add_row("rows per second, learning", f"{learner.n_samples / learning:.3g}")
    table.add_row("rows per second, with their generation", f"{learner.n_samples / (time.process_time() - begun):.3g}")
    table.add_row("its time / a plain epoch of dual ascent in memory", f"{learning / learner.n_samples / epoch:.2f}")
    table.add_row("memory above that of the third piece", f"{(most - before) / 2**20:.1f} MB")
    table.add_row(
        "largest memory of the process", f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10:.0f} MB"
    )
    return table


def plain_epoch(problem: fl.Problem, epochs: int = 6) -> float:
    """Median seconds of an epoch of dual ascent over all samples."""
    (n, d), took = problem.shape, []
    algorithm = SDCA(shrink=False, accelerate=False)
    state = algorithm.begin(problem, Start(np.zeros(d), 0.0, np.zeros(n)), 0)
    for _ in range(epochs):
        start = time.process_time()
        state = algorithm.step(state)
        took.append(time.process_time() - start)
    return median(took)


def _resident() -> float:
    """Bytes of memory that this process has now."""
    with open("/proc/self/statm") as file:
        return float(file.read().split()[1]) * resource.getpagesize()


@click.command(help=__doc__)
@click.option("--rows", multiple=True, default=("pass", "powers", "auto"), show_default=True)
@click.option("--repeats", default=5, show_default=True)
@click.option("--sets", default="imdb,a9a,w8a", show_default=True, help="Of the folder.")
@click.option("--data-dir", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--cache", type=click.Path(path_type=Path), default="benchmarks/results", show_default=True)
@click.option("--samples", default=1_000_000, show_default=True, help="Of the row flat.")
def main(rows: tuple[str, ...], repeats: int, sets: str, data_dir: Path | None, cache: Path, samples: int) -> None:
    console, names = Console(), sets.split(",") if data_dir else ["generated"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if "flat" in rows:
            console.print(flat(samples))
        if "orders" in rows:
            console.print(orders(names, data_dir, cache))
        for name in names:
            if not set(rows) & {"pass", "powers", "auto"}:
                break
            parts = split(name, data_dir, cache, seed=0)
            if "pass" in rows:
                console.print(one_pass(repeats, parts, 2.0, f"{name}: one pass, p = 2"))
            if "powers" in rows:
                console.print(one_pass(repeats, parts, 1.8, f"{name}: one pass, p = 1.8"))
            if "auto" in rows:
                console.print(automatic(repeats, parts, f"{name}: lam='auto'"))


if __name__ == "__main__":
    main()
