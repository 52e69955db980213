"""Losses without a penalty on samples that a linear classifier separates: P falls to 0, and no model attains it.

With y_i (x_i.w + b) > 0 for every sample, P(t w, t b) falls to 0 as t grows, and no objective is below 0. Hinges attain
0 at some t; the logistic and the exponential loss do not. A classifier with a positive margin is taken, of few samples
nearly that of the largest one, and scaled until P <= tol P(0): so it is within atol = tol P(0) of the infimum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fenchel.certificate.certificate import Certificate
from fenchel.certificate.judge import judge_of
from fenchel.certificate.margin.interval import MarginInterval
from fenchel.certificate.margin.judge import MarginJudge
from fenchel.data import limits
from fenchel.data.design import Design
from fenchel.data.products import EVALUATION
from fenchel.data.typing import Vector
from fenchel.problem import MulticlassProblem, Problem, Statement
from fenchel.problem.margin import LargestMargin
from fenchel.steps.base import Model

#: How closely the largest margin is looked for, and for how many steps: as by `margin_interval`.
TOLERANCE, STEPS = 1e-3, 2000


@dataclass(frozen=True)
class Separated:
    """The model, its certificate and multipliers, and the interval of the largest margin; None if 0 is attained."""

    model: Model
    certificate: Certificate
    alpha: Vector
    margin: MarginInterval | None


def separated(
    problem: Statement, own_w: Any, own_b: Any, asked: Certificate, widen: Callable[[MarginJudge, float, int], object]
) -> Separated | None:
    """What there is for samples that a model separates; None if there is a penalty, or it does not separate them.

    `widen` looks for a larger margin than a judge knows, to this tolerance and in so many steps.
    """
    if not problem.penalty.is_zero:
        return None
    margins = _margins(problem)
    if margins is None:
        return None
    constant, judge = problem.X.constant, MarginJudge(margins)
    if constant:
        judge.consider(own_w[..., :-1], constant * own_w[..., -1])
    else:
        judge.consider(own_w, own_b)
    if judge.model is None:
        return None
    judge.try_gradient(judge.primal.z)
    if margins.n_constraints * margins.X.shape[1] <= limits.TUNING.product:  # the search takes many products
        widen(judge, TOLERANCE, STEPS)
    own = judge_of(problem)
    allowed = asked.tol * own.at_zero
    w, b = judge.w, judge.b
    if constant:
        w, b = np.concatenate([w, np.asarray(b / constant)[..., None]], axis=-1), 0.0 * b
    w, b = _scaled(problem, w, b, allowed)
    own.consider(w, b)
    certificate = own.certificate(asked.tol, asked.atol)
    attained = certificate.ok
    certificate = certificate if attained else own.certificate(asked.tol, max(asked.atol, allowed))
    margin = None if attained else judge.interval(judge.margin, 0, TOLERANCE)
    return Separated(Model(own.w, own.b), certificate, own.best.alpha, margin)


def _margins(problem: Statement) -> LargestMargin | None:
    """The largest margin of the samples that count; None for other problems than classification."""
    if not (isinstance(problem, Problem | MulticlassProblem) and isinstance(problem.X, Design)):
        return None
    counted, intercept = np.flatnonzero(problem.weights > 0.0), problem.intercept or problem.X.constant != 0.0
    design = Design(problem.X.matrix) if problem.X.constant else problem.X
    design = design if len(counted) == len(problem.weights) else design.of_rows(counted)
    if isinstance(problem, MulticlassProblem):
        codes, k = np.asarray(problem.y)[counted], problem.n_classes
        return LargestMargin(design, codes, k, intercept) if len(np.unique(codes)) == k else None
    if not problem.loss.is_classification or problem.loss.quadratic:
        return None
    codes = (problem.y[counted] > 0.0).astype(np.int64)
    return LargestMargin(design, codes, 2, intercept) if len(np.unique(codes)) == 2 else None


def _scaled(problem: Any, w: Any, b: Any, allowed: float) -> tuple[Any, Any]:
    """The model times the least power of two with P <= allowed, times the inverse of its length."""
    t = 1.0 / max(float(np.abs(w).max()), EVALUATION * float(np.abs(b).max()))
    while t < 1e200 and not problem.primal(t * w, t * b) <= 0.5 * allowed:
        t *= 2.0
    return t * w, t * b
