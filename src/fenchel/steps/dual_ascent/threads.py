"""The number of threads of an epoch of dual ascent, and the rounds between exchanges of their weights.

Threads visit disjoint samples, each with a copy of the weights; a round ends by summing their changes.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from fenchel.data.design import Design
from fenchel.data.storage import cores


@dataclass(frozen=True)
class ThreadTuning:
    """When epochs use threads; processor time of two threads, on a machine that is shared.

    `python -m benchmarks.tuning steps.dual_ascent.threads work_per_thread 50000 200000 --rows "^sdca two threads"`:
    0.97 and 0.95; `copies_per_round 2 8`, 1.01 and 1.02; `steps_per_round 50 200`, 1.00 and 0.96; `most_rounds 16 64`,
    0.93 and 0.91.
    """

    work_per_thread: int = 100_000  # fewest multiplications per thread
    steps_per_round: int = 100  # fewest samples per thread and round
    copies_per_round: float = 4  # fewest multiplications per round, in numbers of weights
    most_rounds: int = 32  # most rounds per epoch


TUNING = ThreadTuning()


@dataclass
class EpochThreads:
    """Threads for the epochs of one run; only one after an epoch without progress, or without enough CPU time."""

    design: Design
    weights: int
    classes: int = 1
    busy: float = 1.0  # the fraction of the last epoch's steps that moved the weights
    alone: bool = False
    gap: float = np.inf
    gap_factor: float = 1.0  # by which an epoch's own estimate of the gap is multiplied
    starved: int = 0  # epochs in a row in which threads waited for cores
    threads: int = 1  # of the current epoch, and when it began
    wall: float = 0.0
    cpu: float = 0.0

    def plan(self, steps: int) -> tuple[int, int]:
        """Threads and rounds for the next epoch, which visits `steps` samples once each."""
        self.threads, rounds = self._size(steps)
        self.gap_factor = 2.0 if self.threads > 1 else 1.0  # threads do not see each other's moves
        self.wall, self.cpu = time.perf_counter(), time.process_time()
        return self.threads, rounds

    def done(self, busy: float) -> None:
        """After an epoch: record the fraction of its steps that moved the weights, and check its CPU time."""
        self.busy = busy
        if self.threads > 1:
            wall, cpu = time.perf_counter() - self.wall, time.process_time() - self.cpu
            self.starved = self.starved + 1 if cpu <= wall else 0  # no more than one thread would get
            self.alone = self.alone or self.starved >= 2

    def _size(self, steps: int) -> tuple[int, int]:
        if self.alone:
            return 1, 1
        fraction = steps / max(1, self.design.shape[0])
        work = self.design.nnz * self.classes * fraction
        most = min(self.design.threads, cores(), int(work // TUNING.work_per_thread), steps // TUNING.steps_per_round)
        for threads in range(most, 1, -1):  # fewer threads have more work each between two exchanges
            copies = work / (threads * self.weights)
            rounds = min(copies / TUNING.copies_per_round, steps / (threads * TUNING.steps_per_round))
            # where all steps move the weights, four rounds at least: else threads undo what others do
            if rounds >= max(0.5, 4.0 * self.busy * fraction):
                return threads, max(1, min(int(rounds), TUNING.most_rounds))
        return 1, 1

    def checked(self, gap: float) -> None:
        """After a check: if the gap did not decrease, the threads' moves may cancel each other; use one."""
        self.alone = self.alone or self.gap <= gap < np.inf
        self.gap = gap
