"""Linear programs: `QuantileRegressor` and hinge loss with L1 against HiGHS, at a certified gap; wide elastic nets.

    python -m benchmarks.programs [REGEX ...] [--rounds K]

Processor seconds, medians of interleaved runs; the ratio is that of the other one's to fenchel's. "gap" is fenchel's,
as it certifies it. Where HiGHS is not run ("-"), it takes more than minutes.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Callable
from statistics import median

import numpy as np
from scipy.optimize import linprog
from sklearn.datasets import load_breast_cancer, make_regression
from sklearn.linear_model import ElasticNetCV, QuantileRegressor
from sklearn.preprocessing import StandardScaler

import fenchel as fl

SIZES = [(8, 8), (100, 5), (500, 20), (1000, 50), (2000, 100), (5000, 200), (50000, 1000)]
#: Entries beyond which HiGHS is not run.
MOST = 1_000_000

Fit = Callable[[], float]


def quantile(n: int, d: int, tol: float) -> tuple[Fit, Fit | None]:
    """Median regression of normal columns, half of which matter, alpha = 0.01."""
    X, y = make_regression(n, d, n_informative=max(1, d // 2), noise=10.0, random_state=0)
    y = y / y.std()

    def own() -> float:
        return float(fl.QuantileRegressor(alpha=0.01, tol=tol).fit(X, y).certificate_.relative_gap)

    def other() -> float:
        QuantileRegressor(alpha=0.01).fit(X, y)
        return 0.0

    return own, other if X.size <= MOST else None


def hinge(lam: float, tol: float) -> tuple[Fit, Fit]:
    """An L1 support vector machine of breast_cancer with an intercept; by HiGHS as a program in (w+, w-, b, slack)."""
    X, y = load_breast_cancer(return_X_y=True)
    X, y = StandardScaler().fit_transform(X), 2.0 * y - 1.0
    n, d = X.shape

    def own() -> float:
        problem = fl.Problem(X, y, fl.losses.Hinge(), fl.penalties.L1(lam), intercept=True)
        return float(fl.solve(problem, tol=tol).certificate.relative_gap)

    def other() -> float:
        A = -y[:, None] * np.hstack([X, -X, np.ones((n, 1))])
        cost = np.concatenate([np.full(2 * d, lam), [0.0], np.full(n, 1.0 / n)])
        bounds = [(0, None)] * (2 * d) + [(None, None)] + [(0, None)] * n
        linprog(cost, A_ub=np.hstack([A, -np.eye(n)]), b_ub=-np.ones(n), bounds=bounds, method="highs")
        return 0.0

    return own, other


def elastic() -> tuple[Fit, Fit]:
    """`ElasticNetCV` with three ratios, 150 x 5000."""
    X, y = make_regression(150, 5000, n_informative=50, noise=5.0, random_state=0)

    def own() -> float:
        return float(fl.ElasticNetCV(l1_ratio=[0.5, 0.7, 0.9]).fit(X, y).certificate_.relative_gap)

    def other() -> float:
        ElasticNetCV(l1_ratio=[0.5, 0.7, 0.9]).fit(X, y)
        return 0.0

    return own, other


def rows() -> dict[str, tuple[Callable[[], tuple[Fit, Fit | None]]]]:
    """What is raced, by name."""
    found: dict[str, tuple[Callable[[], tuple[Fit, Fit | None]]]] = {}
    for tol in (1e-4, 1e-9):
        for n, d in SIZES:
            found[f"quantile {n} x {d} {tol:g}"] = (lambda n=n, d=d, tol=tol: quantile(n, d, tol),)
        for lam in (0.1, 0.01, 0.001):
            found[f"hinge {lam:g} {tol:g}"] = (lambda lam=lam, tol=tol: hinge(lam, tol),)
    found["elastic net 150 x 5000"] = (elastic,)
    return found


def timed(fit: Fit) -> tuple[float, float]:
    """Processor seconds, and what the fit returns."""
    began = time.process_time()
    value = fit()
    return time.process_time() - began, value


def main(arguments: list[str] | None = None) -> None:
    """Run the rows that match, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("patterns", nargs="*", default=["."])
    parser.add_argument("--rounds", type=int, default=5)
    chosen = parser.parse_args(arguments)
    print("| row | fenchel s | gap | HiGHS, scikit-learn s | ratio |\n|---|---:|---:|---:|---:|")
    for name, (make,) in rows().items():
        if not any(re.search(pattern, name) for pattern in chosen.patterns):
            continue
        own, other = make()
        mine, theirs, gap = [], [], 0.0
        for _ in range(chosen.rounds):
            seconds, gap = timed(own)
            mine.append(seconds)
            if other is not None:
                theirs.append(timed(other)[0])
        ratio = f"{median(theirs):.4f} | {median(theirs) / median(mine):.1f}" if theirs else "- | -"
        print(f"| {name} | {median(mine):.4f} | {gap:.0e} | {ratio} |", flush=True)


if __name__ == "__main__":
    main()
