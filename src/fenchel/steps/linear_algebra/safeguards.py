"""What makes Newton's method converge from afar, and end: shorter steps, damping, patience, and what is rounding.

Both numbers are powers of the machine precision e = 2^-53: of a relative change by sqrt(e) in its argument the value of
a smooth function near its minimum tells nothing but rounding, and e^(3/4) is what a linear system with a condition
number of up to e^(-1/4), about 10^4, leaves of its right-hand side.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

#: sqrt(e): the shortest step worth trying.
TINY = 2.0**-26
#: e^(3/4): relative differences up to here count as rounding.
ROUNDING = 2.0**-40


@dataclass(frozen=True)
class SafeguardTuning:
    """Of all solvers that have them.

    `python -m benchmarks.tuning steps.linear_algebra.safeguards damping 5e-5 2e-4 --rows "^sets intervals 400 x 100
    p=2$"`: 1.95 and 1.03 times as long; `patience 10 40 --rows "^(minnorm|groups auto|fused 500|hinge intercept$)"`:
    1.02 and 1.02.
    """

    patience: int = 20  # steps in which a number that is to vanish must halve
    damping: float = 1e-4  # least one where rows may depend on each other; with 1e-5 multipliers of equal rows diverge


TUNING = SafeguardTuning()


def backtracked(accepts: Callable[[float], bool]) -> float:
    """The first of 1, 1/2, 1/4, ... that is accepted; 0 if none is."""
    t = 1.0
    while not accepts(t):
        t *= 0.5
        if t < TINY:
            return 0.0
    return t


@dataclass
class Damping:
    """A multiple of the identity beside a Hessian, as a part of its mean diagonal (Levenberg 1944; Marquardt 1963).

    A tenth of it after a full step, ten times more after a shorter one, between `least` and 1.
    """

    least: float = field(default_factory=lambda: TUNING.damping)
    value: float = 0.0

    def __post_init__(self) -> None:
        self.value = max(self.value, self.least)

    def learn(self, full: bool) -> None:
        """From a step: whether it was taken in full."""
        self.value = min(max(self.value * (0.1 if full else 10.0), self.least), 1.0)

    @property
    def is_most(self) -> bool:
        """Whether no more can be added."""
        return self.value >= 1.0


@dataclass
class Patience:
    """Steps since a number, such as a gap, was last halved (or `part` of what it was), or other progress was made."""

    times: int = 1  # how many times as much of it as others have
    part: float = 0.5
    best: float = field(default=np.inf, init=False)
    idle: int = field(default=0, init=False)

    def learn(self, value: float, progress: bool = False) -> None:
        """The number after another step, and whether that made other progress."""
        self.idle = 0 if progress else self.idle + 1
        if value < self.part * self.best:
            self.best, self.idle = value, 0

    @property
    def is_over(self) -> bool:
        """Whether it has not halved for too long."""
        return self.idle > self.times * TUNING.patience
