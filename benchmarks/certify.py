"""What a certificate costs: beside a product of the same matrix, within a run, beside someone else's fit, at import.

    python -m benchmarks.certify [--data FILE] [--format svmlight]

Everything is timed in one run, interleaved, and reported as medians and ratios: machines are noisy. Without --data
the matrix is generated: 50000 x 48000 with 6.7 million nonzeros and the skewed columns of text.
"""

from __future__ import annotations

import subprocess
import sys
import time
import tracemalloc
import warnings
from collections.abc import Callable
from statistics import median
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.svm import LinearSVC

import fenchel as fl
from benchmarks.datasets import large_text

ROUNDS = 11


@click.command(help=__doc__)
@click.option("--data", type=click.Path(exists=True), default=None, help="Your own data, two classes.")
@click.option("--format", "format_", default=None, help="Of the data; told from the file's name by default.")
def main(data: str | None, format_: str | None) -> None:
    console = Console()
    X, y = _load(data, format_)
    n, d = X.shape
    console.print(f"{n} x {d}, {X.nnz if hasattr(X, 'nnz') else X.size} entries, {X.dtype}")
    console.print(_against_products(X, y))
    console.print(_within_runs(X, y))
    console.print(_against_fits(X, y))
    console.print(_imports())


def _load(data: str | None, format_: str | None) -> tuple[Any, Any]:
    if data is None:
        generated = large_text()
        return generated.X, generated.y
    X, y = fl.read(data, format=format_)
    classes, codes = fl.data.encode_labels(y)
    if len(classes) != 2:
        raise click.ClickException(f"the data have {len(classes)} classes; two are needed")
    return X, np.where(codes == 1, 1.0, -1.0)


def _seconds(action: Callable[[], Any]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def _against_products(X: Any, y: Any) -> Table:
    """One certificate of smooth problems, at weights near the optimum, in products X w of scipy or NumPy."""
    n, d = X.shape
    w = np.random.default_rng(0).normal(size=d)
    table = Table(
        "problem", "certificate (ms)", "X w (ms)", "ratio", "extra memory / (n + d) doubles", title="a certificate"
    )
    for loss in (fl.losses.Logistic(), fl.losses.SquaredHinge(), fl.losses.Squared()):
        for penalty in (fl.penalties.L2(1 / n), fl.penalties.L1(1 / n)):
            for intercept in (False, True):
                problem = fl.Problem(X, y, loss, penalty, intercept=intercept)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    at = fl.solve(problem, tol=1e-2, max_iter=60, n_threads=None)
                certify, product = [], []
                for _ in range(ROUNDS):
                    certify.append(_seconds(lambda: fl.certify(problem, at.w, at.b)))  # noqa: B023
                    product.append(_seconds(lambda: X @ w))
                one, other = median(certify), median(product)
                tracemalloc.start()
                fl.certify(problem, at.w, at.b)
                peak = tracemalloc.get_traced_memory()[1] / 8 / (n + d)
                tracemalloc.stop()
                name = f"{loss!r}, {type(penalty).__name__}{', intercept' if intercept else ''}"
                table.add_row(name, f"{1e3 * one:.1f}", f"{1e3 * other:.1f}", f"{one / other:.2f}", f"{peak:.0f}")
    return table


def _within_runs(X: Any, y: Any) -> Table:
    """The share of all checks in a run, from the arrays to the result, in one thread."""
    n, title = len(y), "checks within a run, to 1e-3 and 1e-6"
    table = Table("loss", "lam n", *("solver", "run (ms)", "checks", "share") * 2, title=title)
    for loss in (fl.losses.Hinge(), fl.losses.SquaredHinge(), fl.losses.Logistic(), fl.losses.Squared()):
        for lam in (10.0, 1.0, 0.1):
            cells = []
            for tol in (1e-3, 1e-6):
                runs = [_run(X, y, loss, lam / n, tol) for _ in range(3)]
                seconds, share = median(total for total, _ in runs), median(r.trace.checking / t for t, r in runs)
                last = runs[-1][1]
                cells += [last.solver, f"{1e3 * seconds:.1f}", str(len(last.trace)), f"{100 * share:.1f} %"]
            table.add_row(repr(loss), f"{lam:g}", *cells)
    return table


def _run(X: Any, y: Any, loss: Any, lam: float, tol: float) -> tuple[float, fl.Result]:
    start = time.perf_counter()
    result = fl.solve(fl.Problem(X, y, loss, fl.penalties.L2(lam)), tol=tol, n_threads=1, warn=False)
    return time.perf_counter() - start, result


def _against_fits(X: Any, y: Any) -> Table:
    """scikit-learn's LinearSVC at its default tolerance, and its certificate at 1e-3."""
    table = Table("LinearSVC", "fit (s)", "certificate (s)", "ratio", "proven within", title="someone else's SVM")
    for loss in ("hinge", "squared_hinge"):
        for C in (0.1, 1.0, 10.0):
            fits, certificates, found = [], [], []
            for seed in range(3):
                model = LinearSVC(loss=loss, C=C, random_state=seed)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    fits.append(_seconds(lambda: model.fit(X, y)))  # noqa: B023
                certificates.append(_seconds(lambda: found.append(fl.certify(model, X, y, tol=1e-3))))  # noqa: B023
            fit, certify = median(fits), median(certificates)
            table.add_row(
                f"{loss}, C={C:g}",
                f"{fit:.2f}",
                f"{certify:.2f}",
                f"{certify / fit:.2f}",
                f"{max(c.relative_gap for c in found):.1e}",
            )
    return table


def _imports() -> Table:
    """Seconds to import fenchel beyond importing scikit-learn, in fresh interpreters."""

    def fresh(code: str) -> float:
        return _seconds(lambda: subprocess.run([sys.executable, "-c", code], check=True))

    rounds = [(fresh("import sklearn.base"), fresh("import sklearn.base, fenchel")) for _ in range(ROUNDS)]
    extra = median(ours - theirs for theirs, ours in rounds)
    table = Table("import sklearn.base (s)", "fenchel beyond it (s)", title="import")
    table.add_row(f"{median(theirs for theirs, _ in rounds):.2f}", f"{extra:.2f}")
    return table


if __name__ == "__main__":
    main()
