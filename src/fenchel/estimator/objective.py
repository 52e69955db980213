"""Objectives of estimators, and checks of their parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import numpy as np
from joblib import effective_n_jobs

from fenchel.data import Design
from fenchel.data.typing import Vector
from fenchel.problem import Problem
from fenchel.problem.checks import require_flag, shown
from fenchel.problem.losses import Loss, MulticlassLoss
from fenchel.problem.penalties import L1, L2, ElasticNet, NonNegativeElasticNet, NonNegativeL1, NoPenalty, Penalty

Choice = TypeVar("Choice")

#: The penalty beside the mean loss, as a function of W: scikit-learn's C and alpha may multiply sums.
PenaltyOf: TypeAlias = Callable[[float], Penalty]


@dataclass(frozen=True)
class Objective:
    """(1/W) sum_i s_i loss(x_i.w + b; y_i) + penalty(w), with W = sum_i s_i.

    A `MulticlassLoss` gives one problem for all classes, any other loss one for each class against the rest (one for
    two classes) or for each target.
    """

    loss: Loss | MulticlassLoss
    penalty: PenaltyOf | tuple[PenaltyOf, ...]  # for all problems, or one for each
    intercept: bool
    constant: float = 0.0  # entry of the constant column of a penalised intercept; 0 for none
    weigh_rest: bool = True  # one-vs-rest: whether class weights apply to the rest as well

    @property
    def free_intercept(self) -> bool:
        """Whether there is an unpenalised intercept."""
        return self.intercept and not self.constant

    def penalties(self, totals: list[float]) -> list[Penalty]:
        """The penalty of each problem, from its total sample weight."""
        if callable(self.penalty):
            return [self.penalty(total) for total in totals]
        if len(self.penalty) != len(totals):
            raise ValueError(f"alpha has {len(self.penalty)} entries, but y has {len(totals)} targets")
        return [penalty(total) for penalty, total in zip(self.penalty, totals, strict=True)]

    def problems(self, design: Design, targets: list[Vector], weights: list[Vector]) -> list[Problem]:
        """One problem for each target, or for each class against the rest."""
        assert isinstance(self.loss, Loss)
        penalties = self.penalties([float(each.sum()) for each in weights])
        return [
            Problem(design, y, self.loss, penalty, each, self.free_intercept)
            for y, penalty, each in zip(targets, penalties, weights, strict=True)
        ]


def elastic(lam: float, l1_ratio: float, nonnegative: bool = False) -> Penalty:
    """lam (l1_ratio |w|_1 + (1 - l1_ratio)/2 |w|_2^2), lam >= 0, for all weights or for those that are not negative."""
    if lam == 0.0:
        if nonnegative:
            raise ValueError("positive=True needs a positive alpha; use a small one such as 1e-8")
        return NoPenalty()
    if nonnegative:
        return NonNegativeL1(lam) if l1_ratio == 1.0 else NonNegativeElasticNet(lam, l1_ratio)
    if l1_ratio in (0.0, 1.0):
        return L1(lam) if l1_ratio else L2(lam)
    return ElasticNet(lam, l1_ratio)


def number(name: str, value: object) -> float:
    """A float, or an error unless value is a number (not a bool)."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        raise TypeError(f"{name} must be a number, got {shown(value)}")
    return float(value)


def positive(name: str, value: object, instead: str) -> float:
    """A positive finite float, or an error; `instead` is the advice for 0."""
    checked = number(name, value)
    if not 0.0 < checked < np.inf:
        advice = "" if checked else f"; {instead}"
        raise ValueError(f"{name} must be positive and finite, got {checked!r}{advice}")
    return checked


def positive_C(C: object) -> float:
    """C, checked; infinite for no penalty."""
    checked = number("C", C)
    if not checked > 0.0:
        raise ValueError(f"C must be positive (infinite for no penalty), got {checked!r}")
    return checked


def nonnegative_alpha(alpha: object) -> float:
    """alpha, checked; 0 for no penalty."""
    checked = number("alpha", alpha)
    if not 0.0 <= checked < np.inf:
        raise ValueError(f"alpha must be positive and finite (or 0, for no penalty), got {checked!r}")
    return checked


def l1_ratio_of(l1_ratio: object) -> float:
    """l1_ratio, checked."""
    ratio = number("l1_ratio", l1_ratio)
    if not 0.0 <= ratio <= 1.0:
        raise ValueError(f"l1_ratio must lie between 0 and 1, got {ratio!r}")
    return ratio


def one_of(name: str, value: Choice, choices: tuple[object, ...]) -> Choice:
    """value, or an error unless it is one of the choices."""
    if not any(value is choice or (isinstance(choice, str) and value == choice) for choice in choices):
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}; got {shown(value)}")
    return value


def check_hints(selection: str, positive: object, precompute: object, copy_X: object) -> None:
    """Raise for invalid hints to scikit-learn's algorithm."""
    one_of("selection", selection, ("cyclic", "random"))
    if not (isinstance(precompute, bool | np.bool_) or np.asarray(precompute).ndim == 2):  # a Gram matrix
        one_of("precompute", precompute, (True, False, "auto"))
    require_flag(copy_X, "copy_X")
    require_flag(positive, "positive")


def penalised_constant(fit_intercept: bool, penalize_intercept: bool, intercept_scaling: object) -> float:
    """The entry of LIBLINEAR's constant column, 0 for none.

    A large entry makes the intercept cheap; without the column it costs nothing. So an entry above 1 asks for what
    there is, and one below 1 for the column.
    """
    scaling = positive("intercept_scaling", intercept_scaling, "use fit_intercept=False for no intercept")
    if not penalize_intercept:
        if scaling < 1.0:
            raise ValueError(
                f"intercept_scaling={intercept_scaling!r} would have no effect: the intercept is not penalised; "
                "penalize_intercept=True is LIBLINEAR's objective"
            )
        return 0.0
    return scaling if fit_intercept else 0.0


def threads(n_jobs: object) -> int:
    """scikit-learn's n_jobs as a number of threads, by joblib's rules: -1 is all cores, -2 all but one; None is one."""
    if not (n_jobs is None or isinstance(n_jobs, int | np.integer)) or n_jobs == 0:
        raise ValueError(f"n_jobs must be an integer other than 0 (-1 for all cores) or None for one; got {n_jobs!r}")
    return 1 if n_jobs is None else int(effective_n_jobs(n_jobs))
