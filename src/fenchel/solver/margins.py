"""margin_interval: the margin of anybody's classifier, linear or with a kernel, and what no other exceeds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fenchel.certificate.margin import MarginInterval, MarginJudge
from fenchel.certificate.margin.bounds import margin_of
from fenchel.certificate.margin.models import JudgedModel, judged_model
from fenchel.data.convert import unmasked
from fenchel.data.design import Design
from fenchel.data.products import UNIT_ROUNDOFF
from fenchel.data.typing import Indices, MatrixLike, Vector, VectorLike
from fenchel.kernel import Gram
from fenchel.problem.checks import require_one_of, shown
from fenchel.problem.margin import KernelMargin, LargestMargin, Model
from fenchel.problem.vectors import p_norm
from fenchel.solver.result import Callback, Result
from fenchel.solver.solve import Clock, Request, solve_request
from fenchel.steps import Solver


@dataclass(frozen=True)
class Effort:
    """How hard to look for the largest margin."""

    tol: float  # the relative width of the interval at which the search ends
    steps: int


EFFORTS = {"low": Effort(1e-3, 0), "auto": Effort(1e-3, 2000), "high": Effort(1e-10, 20_000)}
#: Margins are bounded to this part of the tolerance, which takes longer than a plain product.
ACCURACY = 0.01


def margin_interval(
    model_or_weights: Any,
    X: MatrixLike,
    y: VectorLike,
    p: float = 2.0,
    multipliers: ArrayLike | None = None,
    effort: str = "auto",
    tol: float | None = None,
    max_seconds: float | None = None,
    callback: Callback | None = None,
    progress: bool = False,
) -> MarginInterval:
    """Bound the margin of a classifier, linear or with a kernel, and that of every other one, in exact arithmetic.

    The margin of (w, b) is min_i y_i (x_i.w + b) / |w|_p; with several classes the least difference between the score
    of the right class and that of another one, divided by the p-norm of all weights. For every w, b and every q >= 0
    with sum_i q_i = 1, and sum_i q_i y_i = 0 if there is an intercept::

        margin(w, b)  <=  best margin  <=  |sum_i q_i y_i x_i|  in the dual norm

    Sample weights have no meaning here: every sample must be on its side. Ctrl-C ends the search; the interval is what
    is proven by then.

    Parameters
    ----------
    model_or_weights : fitted classifier, array of weights, or tuple (w, b)
        scikit-learn's and fenchel's linear classifiers (SVC with a linear kernel and two classes), also in pipelines,
        searches and OneVsRestClassifier; or weights, a row for each class if there are more than two, in the order of
        the sorted labels. With a pair (w, b), or a model with an intercept, all classifiers have a free one. Or SVC
        (any kernel but "sigmoid", two classes), KernelClassifier and MaxMarginClassifier with a kernel: then X are the
        data of the fit, and the margin is min_i y_i (f(x_i) + b) / |f|_H among all functions f of the kernel.
    X, y
        Any samples and their labels. X is not copied for p = 2.
    p : float, default 2.0
        The norm of the weights, from 1 to inf; 2 with a kernel.
    multipliers : array of n numbers >= 0, optional
        q; n x (classes - 1) for several classes.
    effort : {"low", "auto", "high"}, default "auto"
        How hard to look for multipliers. "low": only those that follow from the model's scores. "auto": until the
        interval of the best margin has a relative width of 1e-3; "high": 1e-10. The search finds a classifier of nearly
        the best margin as well (`MarginInterval.model`).
    tol : float, optional
        Another relative width.
    max_seconds : float, optional
        For the search.
    callback : callable, optional
        Called with a `Check` at every certificate of the search, in which `primal` is minus the best margin and `dual`
        minus the upper bound; returning True ends the search.
    progress : bool, default False
        Show a progress bar.

    Returns
    -------
    MarginInterval

    Examples
    --------
    >>> import fenchel as fl
    >>> from sklearn.svm import LinearSVC
    >>> X, y = [[0.0], [1.0], [3.0], [4.0]], ["no", "no", "yes", "yes"]
    >>> m = fl.margin_interval(LinearSVC(C=1e4, tol=1e-8).fit(X, y), X, y)
    >>> bool(m.lower <= 1.0 <= m.upper)
    True
    """
    require_one_of(effort, tuple(EFFORTS), "effort")
    plan, clock = EFFORTS[effort] if tol is None else replace(EFFORTS[effort], tol=_positive(tol)), Clock(max_seconds)
    found = judged_model(model_or_weights, X, y)
    problem = _problem(found, exponent(p))
    given, judge = _given(multipliers, problem), MarginJudge(problem)
    own = margin_of(problem, found.model, ACCURACY * plan.tol)
    judge.keep_model(found.model, own)
    if given is not None:
        judge.try_multipliers(given, "given multipliers")
    if isinstance(problem, KernelMargin) and problem.is_binary:
        judge.try_multipliers(problem.y * found.model.w, "the model's coefficients")
    judge.try_gradient(own.differences)
    search(judge, plan, clock, callback=callback, progress=progress)
    lower = _of_differences(own.lower, problem, found.model) if found.rounded else own.lower
    return judge.interval(lower, own.misclassified, plan.tol)


def _problem(found: JudgedModel, p: float) -> LargestMargin:
    if not isinstance(found.X, Gram):
        design = _design(found.X, found.model.w.shape[-1], found.codes)
        return LargestMargin(design, found.codes, found.k, found.intercept, p)
    if p != 2.0:
        raise ValueError(f"functions of a kernel have a 2-norm only, got p={p:g}")
    return KernelMargin.of(found.X, found.codes, found.intercept, found.k)


def search(
    judge: MarginJudge,
    plan: Effort,
    clock: Clock,
    callback: Callback | None = None,
    progress: bool = False,
    chosen: Solver[Any] | None = None,
) -> Result | None:
    """Look for a larger margin and for a smaller bound than the judge knows; None if there is nothing to look for."""
    if not plan.steps or clock.over or judge.reached(plan.tol):
        return None
    judge.try_equal_samples()
    if judge.contradiction is not None:
        return None
    request = Request(tol=plan.tol, max_iter=plan.steps, callback=callback, progress=progress)
    return solve_request(judge.problem, request, clock=clock, chosen=chosen, judge=judge)


def _of_differences(lower: float, problem: LargestMargin, model: Model) -> float:
    """A bound below the margin before weights and intercept were rounded, each by a relative error of u at most.

    They change y_i (x_i.w + b) / |w|_p by at most u (|x_i|_p* + |b| / |w|_p), and |w|_p by a factor of 1 + u.
    """
    length = p_norm(model.w, problem.p)
    shift = abs(float(model.b[0])) / length if length > 0.0 else 0.0
    return lower - 4.0 * UNIT_ROUNDOFF * (abs(lower) + problem.farthest + shift)


def exponent(p: object) -> float:
    """p of a norm, checked."""
    if isinstance(p, bool) or not isinstance(p, int | float | np.integer | np.floating) or not float(p) >= 1.0:
        raise ValueError(f"p must be a number from 1 to inf, got {shown(p)}")
    return float(p)


def _positive(tol: object) -> float:
    if isinstance(tol, bool) or not isinstance(tol, int | float | np.number) or not float(tol) > 0.0:
        raise ValueError(f"tol must be positive, got {shown(tol)}")
    return float(tol)


def _design(X: MatrixLike | Design, d: int, codes: Indices) -> Design:
    design = Design.of(X)
    if design.constant:
        raise ValueError("a margin has no penalised intercept: pass X without a constant column")
    if design.shape[1] != d:
        raise ValueError(f"X has {design.shape[1]} columns, but the model has {d} weights")
    if design.shape[0] != len(codes):
        raise ValueError(f"y has {len(codes)} entries, but X has {design.shape[0]} rows")
    return design


def _given(multipliers: ArrayLike | None, problem: LargestMargin) -> Vector | None:
    if multipliers is None:
        return None
    array, n = unmasked(multipliers, "multipliers"), len(problem.codes)
    shape = (n,) if problem.is_binary else (n, problem.k - 1)
    if array.shape != shape or array.dtype.kind not in "fiub":
        raise ValueError(f"multipliers must be numbers of shape {shape}, got {array.dtype} of shape {array.shape}")
    q = np.array(array, dtype=np.float64)
    if not (np.all(np.isfinite(q)) and np.all(q >= 0.0) and np.any(q > 0.0)):
        raise ValueError("multipliers must be finite, not negative, and not all zero")
    return q.ravel()
