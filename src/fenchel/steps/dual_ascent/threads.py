"""How many threads share an epoch of dual ascent, and how often they exchange what they found (`together.hpp`)."""

from __future__ import annotations

import time
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
#: Threads that get less than this part of their cores, twice in a row, wait for one another longer than they work.
LEAST_SHARE = 0.6


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
    starved: int = 0  # epochs in a row in which threads had to wait for cores
    threads: int = 1  # of the epoch that is on, and when it began
    wall: float = 0.0
    cpu: float = 0.0

    def of(self, steps: int) -> tuple[int, int]:
        """Threads and rounds for the next epoch, of so many samples, each of which is visited once."""
        self.threads, rounds = self._size(steps)
        self.optimism = SHARED if self.threads > 1 else 1.0
        self.wall, self.cpu = time.perf_counter(), time.process_time()
        return self.threads, rounds

    def done(self, busy: float) -> None:
        """That epoch is over: note the share of its steps that moved the weights, and whether it had its cores."""
        self.busy = busy
        if self.threads > 1:
            wall, cpu = time.perf_counter() - self.wall, time.process_time() - self.cpu
            self.starved = self.starved + 1 if cpu < LEAST_SHARE * self.threads * wall else 0
            self.alone = self.alone or self.starved >= 2

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
