"""When to certify: often enough to stop in time, at a cost of at most a tenth of the run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fenchel.solver.result import Stop
from fenchel.steps import Progress, Solver


@dataclass(frozen=True)
class ScheduleTuning:
    """Certified gap divided by the solver's estimate.

    `python -m benchmarks.tuning all solver.schedule`: times with half and with double are 1.08 and 1.11 for
    `least_ratio`, 1.05 and 0.95 for `most_ratio`, 0.96 and 0.95 for `first_ratio`.
    """

    least_ratio: float = 0.5  # bounds on the ratio observed at the last check
    most_ratio: float = 20.0
    first_ratio: float = 1.2  # before the first check: a check that just fails costs more than a few more steps


TUNING = ScheduleTuning()


class Schedule:
    """Decides after each step whether to certify, from steps, passes and the solver's own estimate of its gap.

    It uses no clock, so that the same seed gives the same bits.
    """

    def __init__(self, solver: Solver[Any], stop: Stop) -> None:
        self._solver, self._stop, self._budget = solver, stop, solver.steps_per_check
        self._steps, self._passes, self._ratio = 0, 0.0, TUNING.first_ratio
        self._last: Progress | None = None

    def due(self, state: Any) -> bool:
        """Whether a certificate is due after one more step."""
        self._steps += 1
        self._last = seen = self._solver.progress(state)
        if seen is None:
            return self._steps >= self._budget
        spent = seen.passes - self._passes
        target = max(self._stop.tol * abs(seen.primal), self._stop.atol) if np.isfinite(seen.primal) else 0.0
        done = seen.gap * self._ratio <= target and (spent >= 1.0 or self._passes == 0.0)
        if done and seen.partial:  # visit the samples left out first: cheaper than a certificate that fails
            self._solver.include_all(state)
            done = False
        return done or spent >= self._budget

    def checked(self, gap: float) -> None:
        """After a certificate: update the ratio of its gap to the solver's estimate."""
        self._steps = 0
        if self._last is not None:
            self._passes = self._last.passes
            if self._last.gap > 0.0:
                self._ratio = float(np.clip(gap / self._last.gap, TUNING.least_ratio, TUNING.most_ratio))
