"""The answer to the question whether some linear classifier separates samples, with its proof."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape

import numpy as np

from fenchel.certificate.interpolation.bounds import Multipliers, dual_bound
from fenchel.certificate.interpolation.infeasible import prove
from fenchel.certificate.margin.bounds import margin_of
from fenchel.certificate.margin.interval import MarginInterval
from fenchel.data.convert import as_vector
from fenchel.data.design import Design
from fenchel.data.typing import Array, Indices, MatrixLike, Vector, VectorLike
from fenchel.problem.margin import LargestMargin, Model


@dataclass(frozen=True)
class Separability:
    """Whether some linear classifier puts every sample on its side.

    Attributes
    ----------
    answer : bool or None
        True and False are proven, in exact arithmetic; None where neither is.
    margin : MarginInterval
        The margin of the separating classifier, and a bound on all others. `separable` looks for any margin, not for
        the best one: `margin_interval((w, b), X, y)` goes on from here.
    w, b : arrays, or None
        A classifier that separates the samples: a vector and a number, or for several classes a row and a number each.
    multipliers : array, or None
        q >= 0 such that an exact q near it has sum_i q_i y_i x_i = 0 (and sum_i q_i y_i = 0 with an intercept): no
        classifier has y_i (x_i.w + b) > 0 for every i.
    intercept : bool
    classes : array
        The labels in their order; with two of them the second is the positive one.
    """

    answer: bool | None
    margin: MarginInterval
    intercept: bool
    classes: Array = field(repr=False, compare=False)
    w: Vector | None = field(default=None, repr=False, compare=False)
    b: Vector | None = field(default=None, repr=False, compare=False)
    multipliers: Vector | None = field(default=None, repr=False, compare=False)

    def verify(self, X: MatrixLike | Design, y: VectorLike) -> bool:
        """Whether the answer is proven for these samples, with rounding errors counted in; False if it is None."""
        problem = problem_of(without_constant(X), y, self.classes, self.intercept)
        if self.answer is True and self.w is not None and self.b is not None:
            if self.margin.upper == np.inf:  # one class only
                return bool(not np.any(self.w) and np.all(problem.y * self.b > 0.0))
            return margin_of(problem, Model(self.w, self.b)).lower > 0.0
        if self.answer is False and self.multipliers is not None:
            hard, alpha = problem.hard_margin, problem.signed(self.multipliers)
            return prove(hard, dual_bound(hard, Multipliers.of(hard, alpha, "multipliers"))) is not None
        return False

    def __str__(self) -> str:
        m = self.margin
        if self.answer is None:
            return f"Not decided: no linear classifier has a margin above {m.upper:.3g}; no positive one was found."
        if not self.answer:
            return str(m).splitlines()[-1]
        if m.upper == np.inf:
            return "Separable: all samples have one label."
        return f"Separable: a linear classifier has a margin of at least {m.best:.3g}; none exceeds {m.upper:.3g}."

    def _repr_html_(self) -> str:
        colour = "#9a6700" if self.answer is None else "#1a7f37"
        return f"<div style='border-left:4px solid {colour};padding:.3em .8em'><b>{escape(str(self))}</b></div>"


def without_constant(X: MatrixLike | Design) -> Design:
    """X as a Design; one with a constant column is an error."""
    design = Design.of(X)
    if design.constant:
        raise ValueError("pass X without a constant column; intercept=True adds a free intercept")
    return design


def problem_of(design: Design, y: VectorLike, classes: Array, intercept: bool) -> LargestMargin:
    """The problem for labels among some classes, any margin being enough."""
    position = {label: k for k, label in enumerate(classes.tolist())}
    labels = np.asarray(y).ravel().tolist()
    if len(labels) != design.shape[0]:
        raise ValueError(f"y has {len(labels)} entries, but X has {design.shape[0]} rows")
    missing = next((label for label in labels if label not in position), None)
    if missing is not None:
        raise ValueError(f"y has {missing!r}, which is none of {', '.join(map(repr, list(position)[:10]))}")
    codes: Indices = np.array([position[label] for label in labels], dtype=np.int64)
    return LargestMargin(design, codes, max(len(classes), 2), intercept, any_margin=True)


def binary_classes(column: VectorLike, n: int) -> Array:
    """The labels of one of several labelings, two at most; a number alone counts as its sign."""
    array = np.asarray(column)
    is_text = array.dtype.kind in "OUS" and all(isinstance(label, str | bytes) for label in array.tolist())
    values: Array = np.unique(array if is_text else as_vector(column, n, "a column of y"))
    if len(values) > 2:
        raise ValueError(f"each column of y must have two labels at most; one has {len(values)}")
    if len(values) == 1 and not is_text:
        label = float(values[0])
        return np.array([-1.0, label]) if label > 0.0 else np.array([label, 1.0])
    return values
