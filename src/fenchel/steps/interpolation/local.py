"""Step sizes of dual ascent from the curvature of R* at hand, rather than from its largest value.

L_i = |x_i|_{2->*}^2 / mu bounds x_i'H x_i for the second derivative H of R* everywhere. For p near 1 it is far from
what H is along a run: on the data of section 4 of Raj and Bach 2020, p = 1 + 1 / log d, 10 to 100 times too large.
After every pass the step of sample i becomes 1 / l_i with

    l_i = min(L_i, l_i, safety x_i'diag(H) x_i),    H = diag(H) + factor f f', factor <= 0, at the present multipliers.

It begins with the curvature along x_i at zero. H changes during a pass, so this proves nothing: a pass that lowers D is
taken back, l_i and `safety` grow. So D never falls unless all l_i = L_i, and those are the steps with the guarantees.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field, replace

import numpy as np

from fenchel.data.typing import Vector
from fenchel.steps.base import Candidate, Overflow
from fenchel.steps.interpolation.state import Iterates


@dataclass(frozen=True)
class LocalTuning:
    """Set on the data of the paper's Figure 2, by the passes to no training mistake: `fenchel.papers.interpolation`."""

    safety: float = 2.5  # with 1, one pass in ten is taken back
    growth: float = 2.0  # of all l_i, and of the safety, after a pass that lowered D
    least: float = 1e-3  # l_i / L_i, for rows where H is zero
    rows: int = 256  # rows of X at a time


TUNING = LocalTuning()


@dataclass
class LocalIterates:
    """Iterates without an intercept, and l_i / L_i for every sample."""

    inner: Iterates
    L: Vector
    q: Vector = field(init=False)  # of the steps 1 / L_i
    ratio: Vector = field(init=False)
    safety: float = field(default=TUNING.safety, init=False)

    def __post_init__(self) -> None:
        self.q = self.inner.passes.q
        self.ratio = np.ones_like(self.q)
        if self.inner.passes.tail == 1 and not self.inner.point()[0].any():
            self._set(np.clip(self._first(), TUNING.least, 1.0))

    @property
    def idle(self) -> bool:
        """Whether a pass visited all samples and changed nothing."""
        return self.inner.idle

    def refresh(self) -> None:
        """Recompute images from multipliers."""
        self.inner.refresh()

    def candidates(self) -> list[Candidate]:
        """The models to certify."""
        return self.inner.candidates()

    def step(self) -> None:
        """One pass; it is taken back if it lowers D with steps longer than 1 / L_i."""
        inner, before = self.inner, self.inner.objective()
        if np.all(self.ratio >= 1.0):
            inner.step()
            self._adapt(inner.point()[1])
            return
        saved = {name: copy(value) for name, value in vars(inner).items() if name not in ("passes", "sampler")}
        if self._rises(before):
            self._adapt(inner.point()[1])
        else:
            vars(inner).update(saved)
            self.safety *= TUNING.growth
            self._set(np.minimum(1.0, TUNING.growth * self.ratio))

    def _first(self) -> Vector:
        """l_i / L_i at zero, where H may be undefined: the curvature of R* along the step of sample i, were it alone.

        With h = 1 / L_i it is 2 (R*(v + h x_i) - R*(v) - h x_i.w) / h^2: (p - 1) L_i for p-norms.
        """
        passes, u = self.inner.passes, self.inner.point()[1][:-1]
        v, w, conjugate = passes.mu * u, passes.weights(self.inner.point()[1]), passes.base.conjugate
        zero, curvature = conjugate(v), np.empty(len(self.q))
        for i, h in enumerate(1.0 / self.L):
            step = h * passes.problem.X.rows(np.array([i]))[0]
            curvature[i] = 2.0 * (conjugate(v + step) - zero - float(step @ w)) / h**2
        return curvature / self.L

    def _rises(self, before: float) -> bool:
        try:
            self.inner.step()
        except Overflow:
            return False
        return self.inner.objective() >= before

    def _adapt(self, u: Vector) -> None:
        """l_i from the curvature at an image."""
        passes = self.inner.passes
        problem, k, n = passes.problem, passes.tail, len(self.q)
        derivative = passes.base.link_derivative(passes.mu * u[:-k])
        if derivative is None:
            return
        curvature = np.empty(n * k)
        for first in range(0, n * k, TUNING.rows):
            which = np.arange(first, min(first + TUNING.rows, n * k))
            curvature[which] = np.square(problem.X.rows(which)) @ derivative.diagonal
        local = self.safety * curvature.reshape(n, k).sum(axis=1) / self.L
        self._set(np.clip(np.minimum(self.ratio, local), TUNING.least, 1.0))

    def _set(self, ratio: Vector) -> None:
        if np.any(ratio != self.ratio):
            self.ratio = ratio
            self.inner.passes = replace(self.inner.passes, q=self.q * ratio)
