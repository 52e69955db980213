"""The classifier with the largest margin."""

from __future__ import annotations

from dataclasses import KW_ONLY, replace
from typing import Self

import numpy as np

from fenchel.certificate import Infeasible, InseparableWarning
from fenchel.certificate.margin import MarginJudge
from fenchel.certificate.margin.bounds import margin_of
from fenchel.data import Design
from fenchel.data.typing import MatrixLike, VectorLike
from fenchel.estimator.base import warn_caller
from fenchel.estimator.classification import LabelScores, encoded
from fenchel.estimator.documentation import documented
from fenchel.estimator.objective import one_of, positive
from fenchel.problem.margin import LargestMargin, Model
from fenchel.problem.vectors import p_norm
from fenchel.solver import NotCertifiedWarning, solve
from fenchel.solver.margins import EFFORTS, exponent, search
from fenchel.solver.solve import Clock
from fenchel.steps.margin.growing import nearest_mean

LEAST = "has the least mean squared violation of a margin of 1"


@documented("margin_interval")
class MaxMarginClassifier(LabelScores):
    """The linear classifier with the largest margin, with a proven interval around the best one.

    Maximises min_i y_i (x_i.w + b) / |w|_p: a support vector machine without slack. With more than two classes the
    margin is the least difference between the score of the right class and that of another one, divided by the p-norm
    of all weights. Sample weights would have no meaning: every sample must be on its side.

    Parameters
    ----------
    p : float, default 2.0
        The norm of the weights, from 1 to inf. For p = 1 few weights are not zero.
    tol : float, default 1e-3
        A fit ends when the margin is proven to be within this fraction of the best one.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from fenchel import MaxMarginClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MaxMarginClassifier(tol=1e-8).fit(X[:100], y[:100])
    >>> model.separable_, len(model.support_), bool(model.margin_interval_.ok)
    ('proven', 3, True)
    """

    p: float = 2.0
    _: KW_ONLY
    tol: float = 1e-3
    on_inseparable: str = "warn"
    max_seconds: float | None = None

    def _check_parameters(self) -> None:
        exponent(self.p)
        positive("tol", self.tol, "use the smallest that is of use, such as 1e-10")
        one_of("on_inseparable", self.on_inseparable, ("warn", "raise"))

    def fit(self, X: MatrixLike, y: VectorLike) -> Self:
        """Fit to the labels y."""
        features, codes = encoded(self, X, y)
        design, clock = Design(features, threads=1).stored_by_rows(), Clock(self.max_seconds)
        problem = LargestMargin(
            design, codes.astype(np.int64), len(self.classes_), bool(self.fit_intercept), exponent(self.p)
        )
        judge = MarginJudge(problem)
        result = search(judge, replace(EFFORTS["high"], tol=float(self.tol)), clock)
        if judge.contradiction is not None and self.on_inseparable == "raise":
            raise Infeasible(judge.contradiction)
        stopped = "interrupted" if result is not None and result.status == "interrupted" else ""
        stopped = stopped or ("stopped by max_seconds" if clock.over else "")
        model = judge.model
        with np.errstate(all="ignore"):
            if model is None:  # a step of the least violation may take long: none where the time is over
                model = nearest_mean(problem) if stopped else _least_violation(problem, clock.left)
            if stopped and judge.upper == np.inf:
                found = judge.consider(model.w, model.b)
                judge.try_gradient(found.z)
        self._conclude(judge, model, stopped)
        return self

    def _conclude(self, judge: MarginJudge, model: Model, stopped: str) -> None:
        problem, best = judge.problem, judge.model
        if best is None:
            own = margin_of(problem, model)
            lower, wrong = own.lower, own.misclassified
        else:
            lower, wrong, model = judge.margin, 0, best
        interval = judge.interval(lower, wrong, float(self.tol))
        least = lower * p_norm(np.ravel(model.w), problem.p)
        with np.errstate(all="ignore"):
            w, b = (x / least if least > 0.0 else x for x in (model.w, model.b))
        if not (np.all(np.isfinite(w)) and np.all(np.isfinite(b))):
            w, b = model.w, model.b
        self.coef_, self.intercept_ = np.atleast_2d(w), np.atleast_1d(b)
        self.margin_interval_ = interval
        self.separable_ = {True: "proven", False: "refuted", None: "unknown"}[interval.separable]
        q = interval.multipliers
        used = np.zeros(0, dtype=np.int64) if q is None else np.flatnonzero(np.any(np.atleast_2d(q.T) > 0.0, axis=0))
        self.support_ = used if interval.support is None else interval.support
        last = str(interval).splitlines()[-1]
        if self.separable_ != "proven":
            found = f"No separating classifier was found{stopped and f' ({stopped})'}: {last}"
            because = last if judge.contradiction is not None else found
            kind = "predicts the class with the nearest mean" if stopped else LEAST
            model_is = f"The model {kind}."
            warn_caller(f"{because} {model_is}", InseparableWarning)
        elif not interval.ok:
            warn_caller(
                f"tol={self.tol:g} was not reached: the margin is at least {interval.lower:.6g}, and none exceeds "
                f"{interval.upper:.6g}; {stopped or 'scale the features, or take a larger tol'}",
                NotCertifiedWarning,
            )


def _least_violation(problem: LargestMargin, seconds: float | None) -> Model:
    """The model whose differences have the least mean squared distance to at least 1, as far as the time allows."""
    hard = problem.hard_margin.replace(on_infeasible="least_violation")
    result = solve(hard, tol=1e-3, max_seconds=seconds, warn=False)
    w = np.asarray(result.w)
    if problem.is_binary:
        return Model(w, np.atleast_1d(result.b))
    U = w.reshape(problem.k, -1)
    return Model(U[:, :-1], U[:, -1]) if problem.intercept else Model(U, np.zeros(problem.k))
