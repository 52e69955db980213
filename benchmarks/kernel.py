"""KernelProblem beside SVC(kernel="rbf"), in turns, medians and ratios, one thread.

    python -m benchmarks.kernel [--rows N ...] [--repeats 3] [--working-set M]

Labels of a curved boundary with noise, in 4 and 20 dimensions, C = 1 and 100. SVC runs at its default tolerance, and
fenchel, from the arrays to the result, to the relative gap that SVC's model is certified to have.
"""

from __future__ import annotations

import time
import warnings
from statistics import median

import click
import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

import fenchel as fl


def curved(n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Normal numbers, and labels by a curve in the first two of them, some of which are wrong."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.where(np.sin(2.0 * X[:, 0]) + X[:, 1] ** 2 - 1.0 + 0.3 * rng.normal(size=n) > 0.0, 1.0, -1.0)


def compare(n: int, d: int, C: float, repeats: int, options: dict[str, int]) -> list[str]:
    """A row of the table."""
    X, y = curved(n, d)
    theirs, ours = [], []
    tol = 0.0
    for _ in range(repeats):
        start = time.perf_counter()
        model = SVC(C=C).fit(X, y)
        theirs.append(time.perf_counter() - start)
        tol = tol or fl.certify(model, X, y, effort="low").relative_gap
        start = time.perf_counter()
        problem = fl.KernelProblem(X, y, fl.losses.Hinge(), fl.penalties.L2(1.0 / (C * n)), intercept=True)
        result = fl.solve(problem, tol=tol, max_seconds=60.0, **options)
        ours.append(time.perf_counter() - start)
    ratio = f"{median(o / t for o, t in zip(ours, theirs, strict=True)):.2f}"
    sizes = [f"{n}", f"{d}", f"{C:g}", f"{len(model.support_)}", f"{tol:.1e}"]
    return [*sizes, f"{median(theirs):.2f}", f"{median(ours):.2f}", ratio, result.status]


@click.command()
@click.option("--rows", multiple=True, default=(2000, 5000), help="Samples.")
@click.option("--repeats", default=3, help="Runs of each.")
@click.option("--working-set", default=0, help="Rows of a working set; 0 uses the whole matrix where it fits.")
def main(rows: tuple[int, ...], repeats: int, working_set: int) -> None:
    """Print the table."""
    warnings.simplefilter("ignore", fl.NotCertifiedWarning)
    table = Table(*["n", "d", "C", "support", "gap", "SVC", "fenchel", "ratio", "status"])
    with threadpool_limits(1):
        for n in rows:
            for d in (4, 20):
                for C in (1.0, 100.0):
                    table.add_row(*compare(n, d, C, repeats, {"working_set": working_set} if working_set else {}))
    Console().print(table)


if __name__ == "__main__":
    main()
