"""Margins by adaptive sampling: Algorithm 2 of Ji, Srebro and Telgarsky 2021.

A row i is drawn with the probability q_i of the dual variables, and stands for the gradient Z'q:

    g_t = b_t (g_(t-1) + z_i),    w_(t+1) = w_t - s_t (g_t + z_i),    q_(t+1) the softmax of Z w_(t+1).

Scores take one product Z z_i, a row of the Gram matrix (`Products.gram_row`); w = -Z'a is formed where it is asked for.
A draw looks at the sums of blocks of 256 probabilities, then at one block.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from fenchel._core import kernels
from fenchel.data.typing import Vector
from fenchel.problem import Interpolation
from fenchel.problem.checks import require_count, require_one_of
from fenchel.steps.base import Candidate, Overflow, Start
from fenchel.steps.margin.rows import MarginRows, MarginSolver


@dataclass
class SamplingState:
    """Scores z, their momentum h = Zg, and both as combinations of rows: w = -Z'a, g = Z'm."""

    rows: MarginRows
    rng: np.random.Generator
    step_size: float
    momentum: bool
    z: Vector = field(init=False)
    h: Vector = field(init=False)
    a: Vector = field(init=False)
    m: Vector = field(init=False)
    sums: Vector = field(init=False)
    shift: float = field(init=False)
    steps: int = field(default=0, init=False)
    drawn: int = field(default=-1, init=False)

    def __post_init__(self) -> None:
        self.z = self.rows.prior.copy()
        self.h, self.a, self.m = (np.zeros(self.rows.n) for _ in range(3))
        self.sums = np.zeros(-(-self.rows.n // kernels.SAMPLING_BLOCK))
        self.shift = kernels.move_samples(self.h, 0.0, 0.0, self.h, self.z, self.sums)

    def step(self) -> None:
        """Draw a row, and move the scores by its row of the Gram matrix."""
        i = self.drawn = kernels.draw_sample(self.z, self.shift, self.sums, self.rng.random())
        b = self.steps / (self.steps + 1.0) if self.momentum else 0.0
        self.shift = kernels.move_samples(self.rows.gram_row(i), b, self.step_size, self.h, self.z, self.sums)
        if not np.isfinite(self.shift):
            raise Overflow("the weights overflow: there may be no separating plane; or rescale the features")
        self.m[i] += 1.0
        self.m *= b
        self.a += self.step_size * self.m
        self.a[i] += self.step_size
        self.steps += 1

    @property
    def q(self) -> Vector:
        """The softmax of the scores."""
        e = np.exp(self.z - self.shift)
        return np.asarray(e / e.sum())

    @property
    def weights(self) -> Vector:
        """w, for Z as scaled."""
        return -self.rows.combination(self.a)

    def candidates(self) -> list[Candidate]:
        """w with the multipliers that made it, and q with its own weights."""
        w, q = self.weights, self.q
        image = self.rows.combination(q)
        return [self.rows.candidate(w, -self.shift, self.a, -w), self.rows.candidate(-image, np.nan, q, image)]


@dataclass(frozen=True)
class MarginSampling(MarginSolver[SamplingState]):
    """Algorithm 2: one row, drawn from the dual variables, in place of all of them; a step is one row.

    Parameters
    ----------
    steps : {"aggressive", "proven"}, default "aggressive"
        The parameters of Algorithm 1, s_t = 1 and b_t = t / (t + 1), which work well; or those of Theorem 4.1,
        s_t = sqrt(log(n) / horizon) and b_t = 0. Both in units of 1 / max_i |z_i|^2.
    horizon : int, optional
        The number of steps to come, for "proven" only: `fl.theory.margin_sampling_steps`.
    """

    steps: str = "aggressive"
    horizon: int | None = None
    name = "margin_sampling"
    summary = "the largest margin by rows drawn from the dual variables"
    steps_per_check = 100
    passes_per_step = 1

    def __post_init__(self) -> None:
        require_one_of(self.steps, ("aggressive", "proven"), "margin_sampling: steps")
        if self.horizon is not None:
            require_count(self.horizon, "margin_sampling: horizon", "steps")
        if (self.horizon is None) != (self.steps == "aggressive"):
            missing = self.horizon is None
            raise ValueError(
                f'margin_sampling: steps="{self.steps}" '
                + ("needs horizon, the number of steps to come" if missing else "does not use horizon; leave it out")
            )

    def begin(self, problem: Interpolation, start: Start, seed: int) -> SamplingState:
        rows = MarginRows.of(problem)
        length = 1.0 if self.horizon is None else float(np.sqrt(np.log(rows.count) / self.horizon))
        return SamplingState(rows, np.random.default_rng(seed), length * rows.unit, self.horizon is None)

    def step(self, state: SamplingState) -> SamplingState:
        """One row."""
        state.step()
        return state
