"""One row of the race: for every solver the rung of its ladder that reaches the target, then its time, in turns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median

import numpy as np

from benchmarks.datasets import Data
from benchmarks.entrant import Peer
from benchmarks.judge import Reference
from benchmarks.objectives import OBJECTIVES, objective, task_of
from benchmarks.worker import OVER, Workers

#: A solver is given up when it is this many times slower than the best so far, but not before so many seconds.
GIVE_UP, PATIENCE = 10.0, 0.5


@dataclass(frozen=True)
class Settings:
    """What is raced and how.

    Attributes
    ----------
    losses, lams, targets : the problems; lams are what `Objective.lam` takes
    repeats : timed runs of each solver
    limit : seconds that one fit may take
    threads : for each solver
    clock : "wall" or "cpu", the time that counts
    """

    losses: Sequence[str]
    lams: Sequence[float]
    targets: Sequence[float]
    repeats: int
    limit: float
    threads: int
    clock: str


@dataclass(frozen=True)
class Attempt:
    """One fit at one tolerance, judged."""

    tol: float
    seconds: float
    suboptimality: float
    failure: str | None = None


@dataclass
class Entry:
    """What one solver did for one target.

    Attributes
    ----------
    tol : the rung that reached the target, None if none did
    seconds : of the timed runs
    suboptimality : the worst of the timed runs
    failure : why it has no time
    waited : seconds after which it was ended, if that is why
    """

    solver: str
    package: str
    tol: float | None = None
    seconds: list[float] = field(default_factory=list)
    suboptimality: float = 0.0
    failure: str | None = None
    waited: float | None = None

    @property
    def median(self) -> float:
        return median(self.seconds) if self.seconds else np.inf

    @property
    def is_ours(self) -> bool:
        return self.package == "fenchel"


@dataclass
class Row:
    """A set, an objective, lam as it was stated and a target, with an entry for every solver that can run."""

    data: str
    loss: str
    lam: str
    target: float
    reference_gap: float
    entries: list[Entry]

    def best(self, ours: bool) -> Entry | None:
        """The quickest of fenchel's solvers, or of the others; None if none reached the target."""
        reached = [entry for entry in self.entries if entry.is_ours == ours and entry.seconds]
        return min(reached, key=lambda entry: entry.median, default=None)

    @property
    def ratio(self) -> float:
        """Time of the best peer over that of fenchel; infinite if only fenchel arrived, nan if nobody did."""
        theirs, ours = self.best(ours=False), self.best(ours=True)
        if ours is None:
            return 0.0 if theirs is not None else np.nan
        return theirs.median / ours.median if theirs is not None else np.inf


def climb(
    ladder: Sequence[float], targets: Sequence[float], attempt: Callable[[float], Attempt]
) -> dict[float, Attempt]:
    """The quickest rung that reaches each target; where none does, the attempt that ended the climb.

    Goes up by two rungs at a time, and tries the one between when a target is reached.

    Parameters
    ----------
    attempt : tolerance -> Attempt
    """
    tried: dict[int, Attempt] = {}
    found: dict[float, Attempt] = {}

    def at(k: int) -> Attempt:
        if k not in tried:
            tried[k] = attempt(ladder[k])
        return tried[k]

    k = 0
    for target in sorted(targets, reverse=True):
        while at(k).suboptimality > target and tried[k].failure is None and k + 2 < len(ladder):
            k += 2
        reached = tried[k].suboptimality <= target
        if reached and k > 0:
            at(k - 1)
        good = [one for one in tried.values() if one.suboptimality <= target]
        found[target] = min(good, key=lambda one: one.seconds) if good else tried[k]
    return found


def race_row(
    data: Data,
    loss: str,
    level: float,
    known: Reference,
    entrants: Sequence[Peer],
    workers: Workers,
    settings: Settings,
    tell: Callable[[str], None],
) -> list[Row]:
    """Race all entrants on one problem; a row for every target.

    Parameters
    ----------
    level : what states lam
    known : the reference that judges
    tell : is told what runs
    """
    stated = OBJECTIVES[loss]
    lam, label = stated.lam(data, level), stated.label(level)
    best = dict.fromkeys(settings.targets, np.inf)

    def attempt(peer: Peer, tol: float, limit: float) -> Attempt:
        tell(f"{data.name} {loss} {label}: {peer.name}, tol={tol:g}")
        run = workers.fit(peer, loss, lam, tol, limit, settings.clock)
        if run.w is None:
            return Attempt(tol, run.seconds, np.inf, run.failure)
        seconds = run.cpu if settings.clock == "cpu" else run.seconds
        return Attempt(tol, seconds, known.suboptimality(objective(task_of(data, loss, lam, tol), run.w)))

    def patience() -> float:
        """Judged by the finest target: who is slow to the first may be quick to the last."""
        return min(settings.limit, max(PATIENCE, GIVE_UP * best[min(settings.targets)]))

    rows = [Row(data.name, loss, label, target, known.relative_gap, []) for target in settings.targets]
    for peer in entrants:
        found = climb(peer.ladder, settings.targets, lambda tol: attempt(peer, tol, patience()))  # noqa: B023
        for row in rows:
            one, entry = found[row.target], Entry(peer.name, peer.package)
            if one.suboptimality <= row.target:
                entry.tol = one.tol
                best[row.target] = min(best[row.target], one.seconds)
            else:
                entry.failure = one.failure or f"stayed at {one.suboptimality:.1e}"
                entry.waited = one.seconds if one.failure == OVER else None
            row.entries.append(entry)
    for _ in range(settings.repeats):
        for peer, *entries in zip(entrants, *(row.entries for row in rows), strict=True):
            goals = list(zip(entries, settings.targets, strict=True))
            time_again(peer, goals, lambda peer, tol: attempt(peer, tol, 2 * settings.limit))
    return rows


def time_again(peer: Peer, entries: Sequence[tuple[Entry, float]], attempt: Callable[[Peer, float], Attempt]) -> None:
    """One more run of the rung that each entry is at; one that serves two targets runs once for both.

    A solver that is random may miss the target where it reached it before: it goes on to the next rung, so that
    every time that counts is one in which the target was reached.

    Parameters
    ----------
    entries : a solver's entries with their targets
    attempt : (peer, tolerance) -> Attempt
    """
    done: dict[float, Attempt] = {}
    for entry, target in entries:
        if entry.tol is None:
            continue
        for tol in peer.ladder[peer.ladder.index(entry.tol) :]:
            done[tol] = one = done[tol] if tol in done else attempt(peer, tol)
            if one.suboptimality <= target:
                entry.tol = tol
                entry.seconds.append(one.seconds)
                entry.suboptimality = max(entry.suboptimality, one.suboptimality)
                break
            if one.failure is not None:
                entry.failure = one.failure
                break
