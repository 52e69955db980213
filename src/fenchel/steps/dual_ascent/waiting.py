"""Visits to the samples whose multipliers may move: a sample that needs no step waits.

A sample is idle at a visit if its multiplier stays what it is: for a half-line, one with multiplier zero and a score in
its set. After its m-th idle visit in a row it is left out of the next m rounds. A round is an order of the sampler; it
has all samples if nobody would be in it. So every sample returns, and one that moves is visited in every round.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from fenchel.data.typing import Vector
from fenchel.steps.dual_ascent.sampling import Sampler

Order = NDArray[np.int64]


@dataclass
class Waiting:
    """Who waits, and what is left of the present round."""

    sampler: Sampler
    samples: int
    idle: NDArray[np.int64] = field(init=False)  # idle visits in a row
    due: NDArray[np.int64] = field(init=False)  # the first round to be in again
    round: int = field(default=0, init=False)
    rest: Order = field(init=False)

    def __post_init__(self) -> None:
        self.wake()

    def wake(self) -> None:
        """Nobody waits, and a new round begins."""
        self.rest = np.empty(0, dtype=np.int64)
        self.idle, self.due = np.zeros((2, self.samples), dtype=np.int64)

    @property
    def is_awake(self) -> bool:
        """Whether nobody has waited since `wake`."""
        return not self.due.any()

    def next(self, most: int) -> Order:
        """At most that many samples of one round, without those that wait since they were visited earlier in it."""
        self.rest = self.rest[self.due[self.rest] <= self.round]
        if not len(self.rest):
            self.round += 1
            order = self.sampler.next()
            present = order[self.due[order] <= self.round]
            self.rest = present if len(present) else order.copy()
        some, self.rest = self.rest[:most], self.rest[most:]
        return some

    def record(self, visited: Order, before: Vector, after: Vector) -> bool:
        """The multipliers of all samples before and after the visits; whether any moved."""
        moved = (before != after).reshape(self.samples, -1).any(axis=1)[visited]
        self.idle[visited[moved]] = 0
        still = np.unique(visited[~moved])
        self.idle[still] += 1
        self.due[still] = self.round + 1 + self.idle[still]
        return bool(moved.any())
