"""margin_interval: the margin of anybody's linear classifier, and what no classifier exceeds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fenchel.certificate.margin.interval import MarginInterval
from fenchel.certificate.margin.models import linear_model
from fenchel.certificate.margin.question import MarginQuestion, Model
from fenchel.certificate.margin.search import EFFORTS, MarginEffort, MarginSearch
from fenchel.certificate.margin.support import may_determine
from fenchel.data.convert import unmasked
from fenchel.data.design import Design
from fenchel.data.products import UNIT_ROUNDOFF
from fenchel.data.typing import Indices, MatrixLike, Vector, VectorLike
from fenchel.problem.checks import require_one_of, shown
from fenchel.problem.vectors import p_norm


def margin_interval(
    model_or_weights: Any,
    X: MatrixLike,
    y: VectorLike,
    p: float = 2.0,
    multipliers: ArrayLike | None = None,
    effort: str = "auto",
    tol: float | None = None,
) -> MarginInterval:
    """Bound the margin of a linear classifier, and that of every other one, in exact arithmetic.

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
        the sorted labels. With a pair (w, b), or a model with an intercept, all classifiers have a free one.
    X, y
        Any samples and their labels. X is not copied for p = 2.
    p : float, default 2.0
        The norm of the weights, from 1 to inf.
    multipliers : array of n numbers >= 0, optional
        q; n x (classes - 1) for several classes.
    effort : {"low", "auto", "high"}, default "auto"
        How hard to look for multipliers. "low": only those that follow from the model's scores. "auto": until the
        interval of the best margin has a relative width of 1e-3; "high": 1e-10. The search finds a classifier of nearly
        the best margin as well (`MarginInterval.model`).
    tol : float, optional
        Another relative width.

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
    plan = EFFORTS[effort] if tol is None else replace(EFFORTS[effort], tol=_positive(tol))
    found = linear_model(model_or_weights, X, y)
    question = MarginQuestion(
        _design(found.X, found.model.w.shape[-1], found.codes), found.codes, found.k, found.intercept, exponent(p)
    )
    interval = interval_of(question, found.model, plan, _given(multipliers, question))
    return (
        replace(interval, lower=_of_differences(interval.lower, question, found.model)) if found.rounded else interval
    )


def _of_differences(lower: float, question: MarginQuestion, model: Model) -> float:
    """A bound below the margin before weights and intercept were rounded, each by a relative error of u at most.

    They change y_i (x_i.w + b) / |w|_p by at most u (|x_i|_p* + |b| / |w|_p), and |w|_p by a factor of 1 + u.
    """
    length = p_norm(model.w, question.p)
    shift = abs(float(model.b[0])) / length if length > 0.0 else 0.0
    return lower - 4.0 * UNIT_ROUNDOFF * (abs(lower) + question.farthest + shift)


def interval_of(
    question: MarginQuestion, model: Model, plan: MarginEffort, multipliers: Vector | None = None
) -> MarginInterval:
    """The interval of a model, after the search that the plan asks for."""
    lower, wrong = question.margin(model)
    search = MarginSearch(question, plan.tol)
    search.offer(model)
    if multipliers is not None:
        search.try_multipliers(multipliers, "given multipliers")
        search.try_contradiction()
    search.guess(model)
    search.run_or_interrupt(plan.passes)
    return concluded(search, lower, wrong)


def concluded(search: MarginSearch, lower: float, wrong: int) -> MarginInterval:
    """What has been found, beside the margin of a model and the number of its mistakes."""
    question, best = search.question, search.model
    mask = None if best is None else may_determine(question, best, search.best, search.upper)
    n = question.design.shape[0]
    return MarginInterval(
        lower,
        0.0 if search.contradiction is not None else search.upper,
        search.best,
        question.p,
        wrong,
        n,
        question.k,
        question.intercept,
        search.how,
        search.tol,
        None if best is None else (best.w, best.b),
        None if search.q is None else search.q.reshape((n,) if question.is_binary else (n, -1)),
        None if mask is None else np.flatnonzero(mask),
        search.contradiction,
    )


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


def _given(multipliers: ArrayLike | None, question: MarginQuestion) -> Vector | None:
    if multipliers is None:
        return None
    array, n = unmasked(multipliers, "multipliers"), question.design.shape[0]
    shape = (n,) if question.is_binary else (n, question.k - 1)
    if array.shape != shape or array.dtype.kind not in "fiub":
        raise ValueError(f"multipliers must be numbers of shape {shape}, got {array.dtype} of shape {array.shape}")
    q = np.array(array, dtype=np.float64)
    if not (np.all(np.isfinite(q)) and np.all(q >= 0.0) and np.any(q > 0.0)):
        raise ValueError("multipliers must be finite, not negative, and not all zero")
    return q.ravel()
