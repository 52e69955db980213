"""Models with the intervals of lam for which they are proven eps-optimal."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from fenchel.certificate import Certificate
from fenchel.certificate.bounds.rounding import gap_between
from fenchel.data.products import UNIT_ROUNDOFF
from fenchel.data.typing import Vector
from fenchel.draw.paths import plot_certified_path
from fenchel.draw.tables import table
from fenchel.problem.checks import shown

#: Bound on the relative rounding error of a few operations.
SPARE = 16 * UNIT_ROUNDOFF


@dataclass(frozen=True)
class Anchor:
    """Upper bound on P_lam(w, b) and lower bound on P*(lam), in exact arithmetic, at one lam."""

    lam: float
    upper: float
    lower: float

    def proves(self, eps: float) -> bool:
        """Whether (1 - eps) P_lam(w, b) <= P*(lam)."""
        least = (1.0 - eps) * self.upper
        return bool(least + SPARE * abs(least) <= self.lower)

    @property
    def gap(self) -> float:
        """A bound on P_lam(w, b) - P*(lam)."""
        return gap_between(self.upper, self.lower)


def between(lam: float, left: tuple[float, float], right: tuple[float, float]) -> tuple[float, float]:
    """The chord through two points (lam, value) at a lam between them, and a bound on its rounding error."""
    (a, at_a), (b, at_b) = left, right
    t = (lam - a) / (b - a) if b > a else 0.0
    return (1.0 - t) * at_a + t * at_b, SPARE * (abs(at_a) + abs(at_b))


@dataclass(frozen=True, eq=False)
class Knot:
    """A model, and the interval of lam for which it is proven eps-optimal.

    Attributes
    ----------
    lam : float
        Where it was found.
    low, high : float
        P_lam(w, b) - P*(lam) <= eps P_lam(w, b) for every lam from low to high.
    w, b : its weights and intercept
    certificate : Certificate
        At lam.
    solved : bool
        Whether a solver found it; if not, it is a mixture of its neighbours with a sufficient certificate.
    """

    lam: float
    w: Vector = field(repr=False)
    b: float
    certificate: Certificate = field(repr=False)
    solved: bool
    anchors: tuple[Anchor, ...] = field(repr=False)  # increasing in lam; the first and the last are the ends

    @property
    def low(self) -> float:
        return self.anchors[0].lam

    @property
    def high(self) -> float:
        return self.anchors[-1].lam

    def gap(self, lam: float) -> float:
        """A bound on P_lam(w, b) - P*(lam): the chord between the bounds at the neighbouring anchors."""
        for left, right in pairwise(self.anchors):
            if left.lam <= lam <= right.lam:
                value, error = between(lam, (left.lam, left.gap), (right.lam, right.gap))
                return value + error
        if lam == self.low:
            return self.anchors[0].gap
        raise ValueError(f"lam is {lam:g}, but this model is proven from {self.low:g} to {self.high:g} only")

    def objective(self, lam: float) -> float:
        """An upper bound on P_lam(w, b), which is affine in lam."""
        ends = self.anchors[0], self.anchors[-1]
        value, error = between(lam, *((end.lam, end.upper) for end in ends))
        return value + error


@dataclass(frozen=True, eq=False)
class CertifiedPath(Sequence[Knot]):
    """Finitely many models, one of which is proven eps-optimal at every lam of an interval; a sequence of its knots.

    Attributes
    ----------
    eps : float
        P_lam(w, b) - P*(lam) <= eps P_lam(w, b) for the model of every lam.
    lam_min, lam_max : float
        The requested interval.
    knots : tuple of knots
        The largest lam first, with adjoining intervals.
    n_solves : int
        The number of solves.
    """

    eps: float
    lam_min: float
    lam_max: float
    knots: tuple[Knot, ...] = field(repr=False)
    n_solves: int

    @property
    def low(self) -> float:
        """The smallest proven lam: lam_min, unless the search ended early."""
        return self.knots[-1].low if self.knots else self.lam_max

    @property
    def complete(self) -> bool:
        """Whether the whole interval is proven."""
        return bool(self.knots) and self.low <= self.lam_min

    @property
    def lams(self) -> Vector:
        """The lams of the knots, the largest first."""
        return np.array([knot.lam for knot in self.knots])

    @property
    def coefs(self) -> Vector:
        """The weights, d x m: a column for each knot."""
        return np.column_stack([knot.w for knot in self.knots]) if self.knots else np.empty((0, 0))

    @property
    def intercepts(self) -> Vector:
        """The m intercepts."""
        return np.array([knot.b for knot in self.knots])

    def at(self, lam: float) -> tuple[Knot, float]:
        """The model that is proven eps-optimal at lam, and the bound on its gap there."""
        if not self.knots:
            raise ValueError("nothing is proven: the search ended before its first model")
        if not self.low <= lam <= self.lam_max:
            raise ValueError(f"lam is {shown(lam)}, but the path is proven from {self.low:g} to {self.lam_max:g}")
        lows = [-knot.low for knot in self.knots]
        knot = self.knots[bisect_left(lows, -float(lam))]
        return knot, knot.gap(float(lam))

    def __len__(self) -> int:
        return len(self.knots)

    def __getitem__(self, k: Any) -> Any:
        return self.knots[k]

    def __str__(self) -> str:
        if not self.knots:
            return f"Nothing is proven: the search ended before its first model; {self.n_solves} solves."
        head = (
            f"For every lam from {self.low:.6g} to {self.lam_max:.6g} one of {len(self)} models is proven optimal up to"
        )
        if not self.complete:
            head = f"Incomplete: ended before {self.lam_min:.6g}. {head}"
        rows = [
            (f"{k.lam:.6g}", f"{k.low:.6g}", f"{k.high:.6g}", f"{np.count_nonzero(k.w)}", "yes" if k.solved else "no")
            for k in self.knots
        ]
        head = f"{head}\n{100 * self.eps:g} % of its objective; {self.n_solves} solves."
        return f"{head}\n{table(('lam', 'from', 'to', 'nonzeros', 'solved'), rows)}"

    def plot(self, title: str = "") -> Any:
        """Draw the weights and the proven gaps; see `fenchel.report.plot_certified_path`."""
        return plot_certified_path(self, title=title)
