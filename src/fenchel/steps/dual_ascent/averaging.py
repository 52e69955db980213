"""Average and random iterates of a run: the outputs of Theorems 2 and 5 of the SDCA paper."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from fenchel.data.typing import Vector


@dataclass
class AveragingWindow:
    """The sum of the mean iterates of the epochs since `first`, and one of their iterates drawn at random."""

    first: int
    total: Vector
    drawn: Vector
    count: int = 0

    def add(self, mean: Vector, inside: Vector, rng: np.random.Generator) -> None:
        """Add the mean iterate of an epoch; `inside`, one of its iterates, is drawn with probability 1 / count."""
        self.count += 1
        self.total += mean
        if rng.integers(self.count) == 0:
            self.drawn = inside.copy()


@dataclass
class SuffixAverage:
    """The average over the last half to three quarters of a run, by two windows, or that of all but the first epochs.

    A new window opens at every epoch 2^k; the one that opened at 2^(k-1) is reported. With `skip`, T0 / n of the
    theorems, there is one window, which opens after so many epochs.
    """

    size: int
    rng: np.random.Generator
    skip: int | None = None
    epoch: int = 0
    windows: list[AveragingWindow] = field(default_factory=list)

    def add(self, mean: Vector, inside: Vector) -> None:
        """The mean iterate of an epoch, and its iterate at a random step."""
        self.epoch += 1
        opens = self.epoch & (self.epoch - 1) == 0 if self.skip is None else self.epoch == self.skip + 1
        if opens:
            window = AveragingWindow(self.epoch, np.zeros(self.size), np.zeros(self.size))
            self.windows = [*self.windows[-1:], window]
        for window in self.windows:
            window.add(mean, inside, self.rng)

    @staticmethod
    def skipped(epochs: ArrayLike) -> Vector:
        """The epochs before the window that is reported after so many, at least 1: T0 / n of the theorems."""
        return np.maximum(2.0 ** (np.floor(np.log2(np.asarray(epochs, dtype=np.float64))) - 1.0), 1.0) - 1.0

    @property
    def average(self) -> Vector:
        """The mean of the iterates in the window."""
        return self.windows[0].total / self.windows[0].count

    @property
    def random(self) -> Vector:
        """One iterate of the window."""
        return self.windows[0].drawn


def require_start(average_from: int | None, output: str, solver: str) -> None:
    """Raise unless `average_from` is None or a number of epochs, and there is something to average."""
    if average_from is None:
        return
    if isinstance(average_from, bool) or not (isinstance(average_from, int | np.integer) and average_from >= 0):
        raise ValueError(f"{solver}: average_from must be a whole number of epochs, at least 0; got {average_from!r}")
    if output == "last":
        raise ValueError(f'{solver}: average_from needs output="average"')
