"""When to certify: often enough to stop in time, rarely enough to cost a tenth of the run at most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fenchel.solver.result import Stop
from fenchel.steps import Progress, Solver


@dataclass(frozen=True)
class ScheduleTuning:
    """`python -m benchmarks.certify`."""

    least_ratio: float = 0.5  # how far a solver's own estimate of its gap may be trusted, either way,
    most_ratio: float = 20.0  # after it was compared with a certificate
    first_ratio: float = 1.2  # before that: a certificate that just misses costs more than the progress it waits for


TUNING = ScheduleTuning()


class Schedule:
    """Counts what was done since the last certificate; a solver that knows its progress can ask for one.

    Everything is counted in steps and passes, not in seconds, so that the same seed gives the same bits.
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
        if done and seen.partial:  # a look at the samples left out costs less than a certificate that they spoil
            self._solver.include_all(state)
            done = False
        return done or spent >= self._budget

    def checked(self, gap: float) -> None:
        """A certificate was made: compare it with what the solver believed."""
        self._steps = 0
        if self._last is not None:
            self._passes = self._last.passes
            if self._last.gap > 0.0:
                self._ratio = float(np.clip(gap / self._last.gap, TUNING.least_ratio, TUNING.most_ratio))
