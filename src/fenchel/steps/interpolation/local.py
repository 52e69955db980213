"""Dual ascent with steps from the curvature of R* at hand, for the samples whose multipliers may move, by way of p = 2.

- L_i = |x_i|_{2->*}^2 / mu bounds x_i'H x_i for the second derivative H of R* everywhere. For p near 1 it is far from
  what H is along a run: on the data of section 4 of Raj and Bach 2020, p = 1 + 1 / log d, it is 10 to 100 times too
  large. The step of a visit is 1 / l_i with l_i = min(L_i, safety x_i'diag(H) x_i), H at the model of the visit,
  safety = 1; of H = diag(H) + factor f f' the second part is left out, for factor <= 0. H changes along the step, so
  this proves nothing: a pass that lowers D is taken back, momentum is dropped, and `safety` doubles. So D never falls
  unless all l_i = L_i, and those are the steps with the guarantees.
- From zero multipliers LpSquared is reached from p = 2: p - 1 halves in two passes. In the 2-norm most
  mistakes go within two or three passes, since a sample's step moves all its features; for p near 1 it moves only those
  with the largest |v_j|, about which little is known at first. Multipliers are carried over, times the
  c that maximises D(c alpha), which is sum_i -s_i sigma_i(-alpha_i) / (2 W R*(v)) for R* homogeneous of degree 2.
- Samples wait after visits that did not move their multipliers (`dual_ascent/waiting.py`).
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field, replace

import numpy as np

from fenchel.problem import Interpolation
from fenchel.problem.penalties import L2, LpSquared, Penalty
from fenchel.steps.base import Candidate
from fenchel.steps.dual_ascent.waiting import Waiting
from fenchel.steps.interpolation.passes import LocalSteps, Passes, smoothness
from fenchel.steps.interpolation.state import AcceleratedIterates, require_finite


@dataclass(frozen=True)
class LocalTuning:
    """`python -m benchmarks.tuning steps.interpolation.local FIELD VALUE ... --rows "^perceptron"`: times.

    `least` 1e-1 1.5e-8: 2.55 and 0.98. `intercept` 0.5 1.0 of the row with one: 1.03 and 1.09. `halving` 1 4: 1.06 and
    1.14. With 1 the median pass without training mistakes in Figure 2, permutations, is the 6th instead of the 4th, and
    that of SGD the 7th: `python -m pytest -m slow tests/papers/test_interpolation.py`.
    """

    least: float = 1e-3  # l_i / L_i, for rows where H is zero
    halving: float = 2.0  # passes in which p - 1 halves, on the way from p = 2
    intercept: float = 0.125  # 1 / rho relative to the mean of L_i


TUNING = LocalTuning()

#: A step is over after so many rounds, however few samples are in them: what a round costs beside its visits is O(n).
ROUNDS, PARTS = 8, 16


@dataclass
class LocalIterates:
    """Iterates of the accelerated method, or the plain one without momentum; `geometries` are penalties to come."""

    inner: AcceleratedIterates
    geometries: list[Penalty]
    waiting: Waiting = field(init=False)
    safety: float = field(default=1.0, init=False)
    idle: bool = field(default=False, init=False)  # whether a pass visited all samples and changed nothing
    begun: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.waiting = Waiting(self.inner.sampler, self.inner.passes.problem.n_samples)

    def refresh(self) -> None:
        """Recompute images from multipliers."""
        self.inner.refresh()

    def candidates(self) -> list[Candidate]:
        """The models to certify."""
        return self.inner.candidates()

    def step(self) -> None:
        """One pass; it is taken back if it lowers D with steps longer than 1 / L_i."""
        inner = self.inner
        if self.begun and self.geometries:
            self._change_geometry(self.geometries.pop(0))
        self.begun = True
        drift = inner.move_centre()
        before, exact = inner.objective(), inner.passes.base.quadratic
        saved = {name: copy(value) for name, value in vars(inner).items() if name not in ("passes", "sampler")}
        finite = self._visits()
        self.idle &= not drift.any()
        if exact or (finite and inner.objective() >= before):
            require_finite(finite)
            if inner.restarts:
                inner.restart_if_due(before)
            return
        if self.safety * TUNING.least >= 1.0:  # all l_i are L_i
            require_finite(finite)
            return
        vars(inner).update(saved)
        inner.restart(inner.passes.problem.in_domain(inner.point()[0]))
        self.safety *= 2.0
        self.waiting.wake()

    def _visits(self) -> bool:
        """As many visits as there are samples; whether all numbers are finite."""
        inner, waiting = self.inner, self.waiting
        size, awake = len(inner.sampler.pool), waiting.is_awake
        left, part, last, moved = size, -(-size // PARTS), waiting.round + ROUNDS, False
        local = LocalSteps(self.safety, TUNING.least)
        with np.errstate(over="ignore", invalid="ignore"):
            while left > 0 and waiting.round < last:
                order, z = waiting.next(min(left, part)), inner.alpha.copy()
                if not inner.visit(order, local):
                    return False
                moved |= waiting.record(order, z, inner.alpha)
                left -= len(order)
        if not moved:
            self.idle = awake and inner.sampler.visits_once and not (inner.momentum or self.geometries)
            waiting.wake()
        return True

    def _change_geometry(self, geometry: Penalty) -> None:
        """Carry the multipliers over to another penalty, times the best factor; the intercept stays."""
        inner, old = self.inner, self.inner.passes
        problem, k = old.problem, old.tail
        alpha, u = inner.point()
        support = problem.constraints.support(-np.reshape(problem.in_domain(alpha), (-1, k)))
        gain, R = -problem.mean(support), geometry.conjugate(old.mu * u[:-k])
        c = gain / (2.0 * R) if gain > 0.0 and R > 0.0 else 1.0
        new = passes_in(problem, geometry, old.inverse_rho / c, old)
        inner.passes, inner.alpha, inner.change = new, c * inner.alpha, c * inner.change
        inner.images[:-k] *= c * old.mu / new.mu


def passes_in(problem: Interpolation, geometry: Penalty, inverse_rho: float, like: Passes) -> Passes:
    """Passes with the links of a geometry. Where p is not the problem's, |x_i|_2 bounds |x_i|_q, and is at hand."""
    own = problem.penalty.norm == geometry.norm
    L = smoothness(problem, geometry if own else L2(geometry.strong_convexity))
    q = problem.weights * ((L + inverse_rho) / problem.total_weight)
    return replace(like, geometry=geometry, q=q, inverse_rho=inverse_rho)


def gentler(penalty: Penalty) -> list[Penalty]:
    """From p = 2 to the given one; only the given one if it is no squared p-norm on all of R^d."""
    if not isinstance(penalty, LpSquared) or penalty.radius is not None or penalty.p == 2.0:
        return [penalty]
    found: list[Penalty] = [L2(penalty.lam)]
    factor = excess = 0.5 ** (1.0 / TUNING.halving)
    while excess > penalty.p - 1.0:
        found.append(LpSquared(penalty.lam, 1.0 + excess))
        excess *= factor
    return [*found, penalty]
