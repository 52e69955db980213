"""Checks of parameters that several estimators share; every message says what to do instead."""

from __future__ import annotations

from typing import Any

import numpy as np
from joblib import effective_n_jobs

from fenchel.problem.penalties import L1, L2, ElasticNet, Penalty

#: The l1_ratio that scikit-learn's names of penalties stand for.
L1_RATIO = {"l2": 0.0, "l1": 1.0}


def positive(name: str, value: Any, instead: str) -> float:
    """A positive finite number; `instead` is what to do about no penalty at all: C infinite, alpha 0."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        raise TypeError(f"{name} must be a number, got {value!r}")
    if not 0.0 < value < np.inf:
        none = value == (np.inf if name == "C" else 0.0)
        raise ValueError(f"{name} must be positive and finite, got {value!r}{f'; {instead}' if none else ''}")
    return float(value)


def positive_C(C: Any) -> float:
    """C of the sum form."""
    return positive("C", C, "without a penalty there is no certificate: a large C such as 1e6 comes close")


def positive_alpha(alpha: Any) -> float:
    """The weight of a penalty."""
    return positive("alpha", alpha, "without a penalty there is no certificate: a small alpha such as 1e-8 comes close")


def l1_ratio_of(l1_ratio: Any) -> float:
    """A share of the L1 part, between 0 and 1."""
    if isinstance(l1_ratio, bool | np.bool_) or not isinstance(l1_ratio, int | float | np.integer | np.floating):
        raise TypeError(f"l1_ratio must be a number, got {l1_ratio!r}")
    if not 0.0 <= l1_ratio <= 1.0:
        raise ValueError(f"l1_ratio must lie between 0 and 1, got {l1_ratio!r}")
    return float(l1_ratio)


def one_of(name: str, value: Any, choices: tuple[Any, ...]) -> Any:
    """One of a few values."""
    if not any(value is choice or (isinstance(choice, str) and value == choice) for choice in choices):
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}; got {value!r}")
    return value


def no_bounds_on_weights(positive: Any) -> None:
    """w >= 0 is a constraint that no solver here keeps."""
    if positive:
        raise ValueError("positive=True is not available: no solver here keeps w >= 0; use scikit-learn's estimator")


def check_hints(selection: Any, positive: Any) -> None:
    """What scikit-learn's Lasso is told of its algorithm."""
    one_of("selection", selection, ("cyclic", "random"))
    no_bounds_on_weights(positive)


def penalised_constant(fit_intercept: bool, penalize_intercept: bool, intercept_scaling: Any) -> float:
    """LIBLINEAR's constant column, 0 for none."""
    scaling = positive("intercept_scaling", intercept_scaling, "use fit_intercept=False for no intercept")
    if not penalize_intercept:
        if scaling != 1.0:
            raise ValueError(
                f"intercept_scaling={intercept_scaling!r} would have no effect: the intercept is not penalised; "
                "with penalize_intercept=True it is, as LIBLINEAR does it"
            )
        return 0.0
    return scaling if fit_intercept else 0.0


def elastic(lam: float, l1_ratio: float) -> Penalty:
    """lam (l1_ratio |w|_1 + (1 - l1_ratio)/2 |w|_2^2)."""
    if l1_ratio in (0.0, 1.0):
        return L1(lam) if l1_ratio else L2(lam)
    return ElasticNet(lam, l1_ratio)


def threads(n_jobs: Any) -> int:
    """scikit-learn's n_jobs as a number of threads, by joblib's rules: -1 is all cores, -2 all but one; None is one."""
    if not (n_jobs is None or isinstance(n_jobs, int | np.integer)) or n_jobs == 0:
        raise ValueError(f"n_jobs must be an integer other than 0 (-1 for all cores) or None for one; got {n_jobs!r}")
    return 1 if n_jobs is None else int(effective_n_jobs(n_jobs))
