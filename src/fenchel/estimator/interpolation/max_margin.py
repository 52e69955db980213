"""The classifier with the largest margin."""

from __future__ import annotations

from dataclasses import KW_ONLY, replace
from typing import Any, Self

import numpy as np

from fenchel.certificate import Infeasible, InseparableWarning, MarginInterval
from fenchel.certificate.margin import MarginJudge
from fenchel.certificate.margin.bounds import margin_of
from fenchel.data import Design
from fenchel.data.typing import Matrix, MatrixLike, VectorLike
from fenchel.estimator.base import Features, checked_features, warn_caller
from fenchel.estimator.classification import Codes, LabelScores, encoded
from fenchel.estimator.documentation import documented
from fenchel.estimator.kernel.classifier import function_scores, is_pairwise
from fenchel.estimator.objective import one_of, positive
from fenchel.kernel import Gram, Kernel, KernelLike, Precomputed, kernel_of
from fenchel.kernel.gram import require_cache_size
from fenchel.problem import KernelProblem
from fenchel.problem.losses import SquaredHinge
from fenchel.problem.margin import KernelMargin, LargestMargin, Model
from fenchel.problem.penalties import L2
from fenchel.solver import NotCertifiedWarning, solve
from fenchel.solver.margins import EFFORTS, exponent, search
from fenchel.solver.solve import Clock
from fenchel.steps.margin.growing import nearest_mean

#: The penalty of a function that cannot separate the samples, beside the kernel's diagonal.
TINY = 1e-4
#: Steps of dual ascent for it.
SWEEPS = 200
#: Fitted attributes of linear classifiers alone, and of those with a kernel alone.
LINEAR_ONLY = ("coef_",)
KERNEL_ONLY = ("kernel_", "dual_coef_", "support_vectors_")
LEAST = "has the least mean squared violation of a margin of 1"


@documented("margin_interval")
class MaxMarginClassifier(LabelScores):
    """The classifier with the largest margin, linear or with a kernel, with a proven interval around the best one.

    Maximises min_i y_i (x_i.w + b) / |w|_p: a support vector machine without slack. With more than two classes the
    margin is the least difference between the score of the right class and that of another one, divided by the p-norm
    of all weights. With a kernel, it is min_i y_i (f(x_i) + b) / |f|_H over the functions f of the kernel, of which
    several classes have one each. Sample weights would have no meaning: every sample must be on its side.

    Parameters
    ----------
    p : float, default 2.0
        The norm of the weights, from 1 to inf. For p = 1 few weights are not zero. With a kernel 2.
    kernel, gamma, degree, coef0, cache_size
        As in `KernelProblem`; None, the default, and "linear" for linear classifiers.
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
    kernel: KernelLike | None = None
    gamma: float | str | None = "scale"
    degree: int = 3
    coef0: float = 0.0
    cache_size: float = 200.0

    @property
    def _is_linear(self) -> bool:
        return self.kernel is None or (isinstance(self.kernel, str) and self.kernel == "linear")

    def _check_parameters(self) -> None:
        exponent(self.p)
        positive("tol", self.tol, "use the smallest that is of use, such as 1e-10")
        one_of("on_inseparable", self.on_inseparable, ("warn", "raise"))
        self._kernel()
        require_cache_size(self.cache_size)
        if not self._is_linear and self.p != 2.0:
            raise ValueError(f"functions of a kernel have a 2-norm only, got p={self.p:g}")

    def _kernel(self) -> Kernel:
        kernel = "linear" if self.kernel is None else self.kernel
        return kernel_of(kernel, self.gamma, self.degree, self.coef0)

    def _problem(self, X: Features, codes: Codes) -> LargestMargin:
        intercept, k, labels = bool(self.fit_intercept), len(self.classes_), codes.astype(np.int64)
        if self._is_linear:
            design = Design(X, threads=1).stored_by_rows()
            return LargestMargin(design, labels, k, intercept, exponent(self.p))
        return KernelMargin.of(Gram(X, self._kernel(), self.cache_size), labels, intercept, k)

    def fit(self, X: MatrixLike, y: VectorLike) -> Self:
        """Fit to the labels y."""
        features, codes = encoded(self, X, y)
        clock, problem = Clock(self.max_seconds), self._problem(features, codes)
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
        least = lower * problem.penalty.lengths(np.ravel(model.w))[0]
        with np.errstate(all="ignore"):
            w, b = (x / least if least > 0.0 else x for x in (model.w, model.b))
        if not (np.all(np.isfinite(w)) and np.all(np.isfinite(b))):
            w, b = model.w, model.b
        elif least > 0.0:  # the margin of the weights as they are rounded
            own = margin_of(problem, Model(w, b))
            lower, wrong = own.lower, own.misclassified
        interval = judge.interval(lower, wrong, float(self.tol))
        self.intercept_ = np.atleast_1d(b)
        self.margin_interval_ = interval
        self.separable_ = {True: "proven", False: "refuted", None: "unknown"}[interval.separable]
        for name in LINEAR_ONLY if isinstance(problem, KernelMargin) else KERNEL_ONLY:
            self.__dict__.pop(name, None)  # of an earlier fit
        if isinstance(problem, KernelMargin):
            gram = problem.X.gram
            beta = np.atleast_2d(w)
            self.support_, self.kernel_ = np.flatnonzero(np.any(beta != 0.0, axis=0)), gram.kernel
            self.dual_coef_ = beta[:, self.support_]
            given = isinstance(gram.kernel, Precomputed)
            self.support_vectors_ = np.zeros((0, 0)) if given else gram.samples.take(self.support_).matrix
        else:
            q, self.coef_ = interval.multipliers, np.atleast_2d(w)
            used = np.zeros(0, np.int64) if q is None else np.flatnonzero(np.any(np.atleast_2d(q.T) > 0.0, axis=0))
            self.support_ = used if interval.support is None else interval.support
        self._warn(judge, interval, stopped)

    def _warn(self, judge: MarginJudge, interval: MarginInterval, stopped: str) -> None:
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

    def _scores(self, X: MatrixLike) -> Matrix:
        if "kernel_" in self.__dict__:
            return function_scores(self, checked_features(self, X))
        return super()._scores(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = is_pairwise(self.kernel)
        return tags


def _least_violation(problem: LargestMargin, seconds: float | None) -> Model:
    """The model whose differences have the least mean squared distance to at least 1, as far as the time allows; with
    a kernel, and next to no penalty.
    """
    if isinstance(problem, KernelMargin):
        gram, clock, parts = problem.X.gram, Clock(seconds), []
        penalty = L2(TINY * max(float(np.mean(gram.diagonal)), TINY))
        for own in (1,) if problem.is_binary else range(problem.k):  # each of several classes beside all others
            y = np.where(problem.codes == own, 1.0, -1.0)
            squared = KernelProblem(gram, y, SquaredHinge(), penalty, intercept=problem.intercept)
            parts.append(solve(squared, tol=1e-2, max_iter=SWEEPS, max_seconds=clock.left, warn=False))
        w, b = np.stack([part.w for part in parts]), np.array([float(part.b) for part in parts])
        return Model(w[0] if problem.is_binary else w, b)
    hard = problem.hard_margin.replace(on_infeasible="least_violation")
    result = solve(hard, tol=1e-3, max_seconds=seconds, warn=False)
    w = np.asarray(result.w)
    if problem.is_binary:
        return Model(w, np.atleast_1d(result.b))
    U = w.reshape(problem.k, -1)
    return Model(U[:, :-1], U[:, -1]) if problem.intercept else Model(U, np.zeros(problem.k))
