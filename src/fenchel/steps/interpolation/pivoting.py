"""Quadratic problems over multipliers of intervals, by block principal pivoting (Judice and Pires 1994).

Minimise  b'Kb/2 + c'b + sum_i h_i(b_i)  with h_i(b) = max(-low_i b, -high_i b), K positive definite. With z = c + K b
the optimum has z_i in [low_i, high_i]; z_i = low_i where b_i > 0, z_i = high_i where b_i < 0. So each i is in one of
three states: at the lower end, at the upper end, or b_i = 0. Given states, b solves linear equations. All states that
its signs and z contradict are changed at once, or only the last of them where that has not helped, which ends after
finitely many changes; patience may be over sooner.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fenchel.data.typing import Indices, Vector
from fenchel.steps.base import never
from fenchel.steps.linear_algebra.safeguards import ROUNDING, Patience

States = NDArray[np.int8]  # 1 at the lower end, -1 at the upper end, 0 where the multiplier is zero
#: (rows, right side) -> the solution of K b = right side among these rows.
SolveRows = Callable[[Indices, Vector], Vector]


@dataclass(frozen=True)
class PivotTuning:
    """With none, half-lines of 100 x 400 with an intercept take 1.9 times as long; `python -m benchmarks.tuning
    steps.interpolation.pivoting chances 2 10 --rows "^(minnorm|sets intervals 100 x 400 p=2$)"`: 0.99 and 1.02.
    """

    chances: int = 5  # changes of all states that may fail to make fewer contradictions


TUNING = PivotTuning()


@dataclass
class Quadratic:
    """K by its products, c, and the ends."""

    times: Callable[[Vector], Vector]
    solve: SolveRows
    c: Vector
    low: Vector
    high: Vector
    late: Callable[[], bool] = never  # whether to end with what there is

    def minimise(self, states: States) -> tuple[Vector, States, bool]:
        """The minimiser, from a guess of the states; and whether it was found before patience was over."""
        point = self.low == self.high
        states = np.where(point, np.int8(1), states)
        fewest, chances, patience = len(states) + 1, TUNING.chances, Patience()
        b, found = np.zeros(len(states)), False
        while not patience.is_over:
            active = np.flatnonzero(states)
            target = np.where(states > 0, self.low, self.high)[active]
            b = np.zeros(len(states))
            if len(active):
                b[active] = self.solve(active, target - self.c[active])
            changes = self._contradictions(b, states, point)
            wrong = np.flatnonzero(changes != states)
            if not len(wrong):
                found = True
                break
            if self.late():
                break
            patience.learn(len(wrong))
            if len(wrong) < fewest:
                fewest, chances = len(wrong), TUNING.chances
            elif chances:
                chances -= 1
            else:
                wrong = wrong[-1:]
            states = states.copy()
            states[wrong] = changes[wrong]
        outside = ((b > 0.0) & (self.low == -np.inf)) | ((b < 0.0) & (self.high == np.inf))  # by rounding
        return np.where(outside, 0.0, b), states, found

    def _contradictions(self, b: Vector, states: States, point: NDArray[np.bool_]) -> States:
        """The states that follow from b and z."""
        z = self.c + self.times(b)
        spare = ROUNDING * (np.abs(self.c) + np.abs(z - self.c))
        sign = ROUNDING * float(np.abs(b).max(initial=0.0))
        found = np.where(states * b < -sign, np.int8(0), states)
        idle = states == 0
        found = np.where(idle & (z < self.low - spare), np.int8(1), found)
        found = np.where(idle & (z > self.high + spare), np.int8(-1), found)
        return np.where(point, np.int8(1), found).astype(np.int8)
