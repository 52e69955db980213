"""How many threads share an epoch of dual ascent, and how often they exchange what they found (`together.hpp`)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fenchel.data.design import Design
from fenchel.data.threads import cores

#: Multiplications that keep a thread busy for longer than it takes to start, and samples between two exchanges.
WORK_PER_THREAD, STEPS_PER_ROUND = 100_000, 100
#: How many times the multiplications between two exchanges outnumber the weights, and must at least.
COPIES_PER_ROUND, LEAST_COPIES = 4, 2
#: Exchanges in an epoch, at most, and at least where n steps move the weights.
MOST_ROUNDS, LEAST_ROUNDS = 32, 4
#: A thread sees its own samples' share of the gap, not what the others' moves, which it does not see, add to it.
SHARED = 1.5


@dataclass
class Team:
    """Whether threads share the epochs of a run, as far as they bring progress."""

    design: Design
    weights: int
    classes: int = 1
    busy: float = 1.0  # the share of the last epoch's steps that moved the weights
    alone: bool = False
    gap: float = np.inf
    optimism: float = 1.0  # what an epoch's own estimate of the gap is to be multiplied with

    def of(self, steps: int) -> tuple[int, int]:
        """Threads and rounds for the next epoch, of so many samples, each of which is visited once."""
        threads, rounds = self._size(steps)
        self.optimism = SHARED if threads > 1 else 1.0
        return threads, rounds

    def _size(self, steps: int) -> tuple[int, int]:
        if self.alone:
            return 1, 1
        share = steps / max(1, self.design.shape[0])
        work = self.design.nnz * self.classes * share
        most = min(self.design.threads, cores(), int(work // WORK_PER_THREAD), steps // STEPS_PER_ROUND)
        for threads in range(most, 1, -1):  # fewer have more to do between two exchanges
            copies = work / (threads * self.weights)
            rounds = min(copies / COPIES_PER_ROUND, steps / (threads * STEPS_PER_ROUND))
            if copies >= LEAST_COPIES and rounds >= LEAST_ROUNDS * self.busy * share:
                return threads, max(1, min(int(rounds), MOST_ROUNDS))
        return 1, 1

    def checked(self, gap: float) -> None:
        """A check has found this gap: where it is no progress, threads may be in each other's way."""
        self.alone = self.alone or self.gap <= gap < np.inf
        self.gap = gap
