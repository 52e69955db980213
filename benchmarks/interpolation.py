"""Minimum norms and hard margins: fenchel beside scipy and scikit-learn, in turns, medians and ratios, one thread.

    python -m benchmarks.interpolation [--rows ROW ...] [--repeats 3]

The rows, on generated data, or the last one on imdb:

dense    MinNormRegressor(p=2) and scipy.linalg.lstsq on n x 10 n normal numbers;
sparse   MinNormRegressor(p=2) and scipy.sparse.linalg.lsqr on text-like rows, to the same residual;
margin   the hard margin of separable text-like rows, half-lines with L2, beside SVC(kernel="linear", C=1e10) and
         LIBLINEAR's hinge loss, each C at the first tolerance that reaches the margin that fenchel is asked for;
         a C that does not reach it is left out.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import click
import numpy as np
import scipy.linalg
import scipy.sparse as sp
from rich.console import Console
from rich.table import Table
from scipy.sparse.linalg import lsqr
from sklearn.svm import SVC, LinearSVC

import fenchel as fl
from benchmarks.datasets import from_folder

Fit = Callable[[], np.ndarray]
MOST_FOR_SVC = 6000
TOL = 1e-3  # of hard margins
TOLERANCES = (1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 1e-5)  # of LIBLINEAR


def text_like(n: int, d: int, per_row: int, seed: int) -> sp.csr_array:
    """Rows of length 1 with about so many words, whose frequencies fall like 1 / rank, weighted by rarity."""
    rng = np.random.default_rng(seed)
    p = 1.0 / np.arange(3.0, d + 3.0)
    words = rng.choice(d, size=(n, 2 * per_row), p=p / p.sum())
    rows = np.repeat(np.arange(n), 2 * per_row)
    counts = sp.csr_array((np.ones(rows.size), (rows, words.ravel())), shape=(n, d))
    counts.sum_duplicates()
    seen = np.maximum(np.bincount(counts.indices, minlength=d), 1)
    counts.data = (1.0 + np.log(counts.data)) * (1.0 + np.log((1.0 + n) / (1.0 + seen)))[counts.indices]
    lengths = np.sqrt(counts.multiply(counts).sum(axis=1))
    made = sp.csr_array(sp.diags_array(1.0 / lengths) @ counts)
    made.indices, made.indptr = made.indices.astype(np.int32), made.indptr.astype(np.int32)  # as scikit-learn needs
    return made


def timed(fits: dict[str, Fit], repeats: int, quality: Callable[[np.ndarray], str], title: str) -> Table:
    """Fits in turns; the median seconds of each, its ratio to the first, and what it reached."""
    seconds: dict[str, list[float]] = {name: [] for name in fits}
    found: dict[str, np.ndarray] = {}
    for _ in range(repeats):
        for name, fit in fits.items():
            start = time.perf_counter()
            found[name] = fit()
            seconds[name].append(time.perf_counter() - start)
    table = Table("", "seconds", "beside fenchel", "reached", title=title)
    first = median(next(iter(seconds.values())))
    for name, each in seconds.items():
        table.add_row(name, f"{median(each):.3f}", f"{median(each) / first:.2f}", quality(found[name]))
    return table


def dense(repeats: int, n: int) -> Table:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n, 10 * n)), rng.normal(size=n)
    fits: dict[str, Fit] = {
        "fenchel": lambda: fl.MinNormRegressor(fit_intercept=False).fit(X, y).coef_,
        "scipy lstsq": lambda: scipy.linalg.lstsq(X, y)[0],
        "scipy lstsq, gelsy": lambda: scipy.linalg.lstsq(X, y, lapack_driver="gelsy")[0],
    }
    return timed(fits, repeats, lambda w: f"residual {np.linalg.norm(X @ w - y):.1e}", f"dense, {n} x {10 * n}")


def sparse(repeats: int, n: int, d: int) -> Table:
    X = text_like(n, d, 75, 1)
    y = np.random.default_rng(2).normal(size=n)

    def ours() -> np.ndarray:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a residual of rounding is no proof for so many rows
            return fl.MinNormRegressor(fit_intercept=False).fit(X, y).coef_

    residual = float(np.linalg.norm(X @ ours() - y)) / float(np.linalg.norm(y))
    fits = {"fenchel": ours, "scipy lsqr": lambda: lsqr(X, y, atol=0.0, btol=residual, conlim=0.0, iter_lim=10**5)[0]}
    quality = lambda w: f"residual {np.linalg.norm(X @ w - y) / np.linalg.norm(y):.1e}"  # noqa: E731
    return timed(fits, repeats, quality, f"sparse, {n} x {d}, {X.nnz} entries")


def separable(n: int, folder: Path | None, cache: Path) -> tuple[sp.csr_array, np.ndarray]:
    """Some rows of imdb, which are separable; or generated rows with a fifth of the labels turned."""
    rng = np.random.default_rng(4)
    if folder is not None:
        data = from_folder(folder, "imdb", cache)
        some = rng.permutation(data.X.shape[0])[:n]
        return data.X[some], data.y[some]
    X = text_like(n, 5 * n, 75, 3)
    y = np.sign(X @ rng.normal(size=X.shape[1]) + 1e-3)
    return X, np.where(rng.random(n) < 0.2, -y, y)


def margin(repeats: int, n: int, Cs: Sequence[float], folder: Path | None, cache: Path) -> Table:
    X, y = separable(n, folder, cache)

    def ours() -> np.ndarray:
        return fl.solve(fl.Interpolation(X, fl.sets.HalfLine(1.0, y)), tol=TOL).w

    def linear(model: Any) -> np.ndarray:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            coef = model.fit(X, y).coef_
        return np.ravel(coef.toarray() if sp.issparse(coef) else coef)

    def width(w: np.ndarray) -> float:
        return float(np.min(y * (X @ w))) / float(np.linalg.norm(w))

    def liblinear(C: float, tol: float) -> Fit:
        return lambda: linear(
            LinearSVC(loss="hinge", C=C, fit_intercept=False, tol=tol, max_iter=10**5, random_state=0)
        )

    best = fl.solve(fl.Interpolation(X, fl.sets.HalfLine(1.0, y)), tol=1e-7).w
    goal = (1.0 - 0.5 * TOL) * width(best)  # what a relative gap of TOL in |w|^2 proves
    fits: dict[str, Fit] = {"fenchel": ours}
    for C in Cs:
        tol = next((tol for tol in TOLERANCES if width(liblinear(C, tol)()) >= goal), None)
        if tol is not None:
            fits[f"LIBLINEAR, C = {C:g}, tol = {tol:g}"] = liblinear(C, tol)
    if n <= MOST_FOR_SVC:  # it takes minutes for more
        fits["SVC, C = 1e10"] = lambda: linear(SVC(kernel="linear", C=1e10))
    return timed(fits, repeats, lambda w: f"margin {width(w):.6g}", f"hard margin, {n} x {X.shape[1]}, {X.nnz} entries")


@click.command(help=__doc__)
@click.option("--rows", multiple=True, default=("dense", "sparse", "margin"), show_default=True)
@click.option("--repeats", default=3, show_default=True)
@click.option("--size", default=1.0, show_default=True, help="Samples, as a part of 2000, 20000 and 4000.")
@click.option("--data-dir", type=click.Path(exists=True, file_okay=False, path_type=Path), help="For rows of imdb.")
@click.option("--cache", type=click.Path(path_type=Path), default="benchmarks/results", show_default=True)
@click.option("--C", "Cs", type=float, multiple=True, default=(1e2, 1e3, 1e4), show_default=True, help="Of LIBLINEAR.")
def main(
    rows: tuple[str, ...], repeats: int, size: float, data_dir: Path | None, cache: Path, Cs: tuple[float, ...]
) -> None:
    console = Console()
    tables = {
        "dense": lambda: dense(repeats, int(2000 * size)),
        "sparse": lambda: sparse(repeats, int(20000 * size), int(47000 * size)),
        "margin": lambda: margin(repeats, int(4000 * size), Cs, data_dir, cache),
    }
    for row in rows:
        console.print(tables[row]())


if __name__ == "__main__":
    main()
