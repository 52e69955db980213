"""What coordinate ascent may return beside its last iterate: an average, or a random iterate (Theorems 2 and 5)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from fenchel.data.typing import Vector

OUTPUTS = ("last", "average", "random")


@dataclass
class Window:
    """The mean multipliers, and one iterate drawn at random, of the epochs since `first`."""

    first: int
    total: Vector
    drawn: Vector
    count: int = 0

    def add(self, mean: Vector, inside: Vector, rng: np.random.Generator) -> None:
        """One more epoch, with its mean and one of its iterates; each epoch's has the same chance to be the one
        kept.
        """
        self.count += 1
        self.total += mean
        if rng.integers(self.count) == 0:
            self.drawn = inside.copy()


@dataclass
class Outputs:
    """The last part of a run, between a half and three quarters of it: two windows that take turns.

    A new window opens at every epoch 2^k; the one that opened at 2^(k-1) is what is reported.
    """

    size: int
    rng: np.random.Generator
    epoch: int = 0
    windows: list[Window] = field(default_factory=list)

    def add(self, mean: Vector, inside: Vector) -> None:
        """The mean multipliers of an epoch, and its iterate at a random step."""
        self.epoch += 1
        if self.epoch & (self.epoch - 1) == 0:
            self.windows = [*self.windows[-1:], Window(self.epoch, np.zeros(self.size), np.zeros(self.size))]
        for window in self.windows:
            window.add(mean, inside, self.rng)

    @property
    def average(self) -> Vector:
        """The mean of the iterates in the window."""
        return self.windows[0].total / self.windows[0].count

    @property
    def random(self) -> Vector:
        """One iterate of the window."""
        return self.windows[0].drawn
