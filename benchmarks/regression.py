"""Two builds of fenchel side by side: the time of every row, and which rows have become slower.

\b
    python -m pip install --no-deps --target OLD fenchel-old.whl     one folder for each build
    python -m pip install --no-deps --target NEW fenchel-new.whl
    python -m benchmarks.regression --old OLD --new NEW --data-dir DIR

Rows are those of the race (with and without zeros), cross-validation, certificates, certified paths, denoising and
estimators; benchmarks/regression_jobs.py states them. Each build has a process of its own, which stays, on one core and
with one thread. In every round both are asked for the same, in turns, as often as it takes to fill 30 ms. The
ratio is the median over rounds of new processor time over old, with its quartiles; the wall clock's is beside it.
Where memory lies differs between processes, by up to a tenth of the time on imdb: close rows need --pairs 5.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import asdict
from itertools import groupby
from math import ceil
from pathlib import Path

import click
import numpy as np

from benchmarks.regression_jobs import Job, jobs
from benchmarks.worker import THREAD_VARIABLES

#: Seconds that a build's part of a round should take.
ROUND = 0.03
#: A row has at least so many rounds.
FEWEST = 3
#: A row is slower if its ratio is above this.
SLOWER = 1.05

#: Only the finders of files: an editable install would have the first say. Then the build, then this folder.
_START = (
    "import sys; sys.meta_path[:] = [finder for finder in sys.meta_path if 'frozen' in finder.__module__]; "
    "sys.path.insert(0, sys.argv[1]); "
    "from benchmarks.regression_jobs import serve; serve(int(sys.argv[2]))"
)


class Build:
    """A process that runs the build in a folder, from `with` to its end."""

    def __init__(self, folder: Path, core: int) -> None:
        self._folder = folder.resolve()
        self._command = [sys.executable, "-c", _START, str(self._folder), str(core)]

    def __enter__(self) -> Build:
        environment = os.environ | dict.fromkeys(THREAD_VARIABLES, "1")
        repository = Path(__file__).parents[1]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            self._command, env=environment, cwd=repository, text=True, stdin=pipe, stdout=pipe
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def kernels(self) -> str:
        """The name of its compiled module; an error if not all of it is in the folder. To be asked first."""
        files = self._answer()
        if strange := [file for file in files if not Path(file).is_relative_to(self._folder)]:
            raise click.ClickException(f"{self._folder} holds no whole build: {', '.join(strange)} was imported")
        return Path(files[1]).name

    def seconds(self, job: Job, folder: Path | None, count: int) -> np.ndarray:
        """Of one run, by the processor and on the wall: means of `count` runs."""
        order = {"job": asdict(job), "folder": folder and str(folder), "count": count}
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return np.array(self._answer())

    def _answer(self) -> list:
        line = self._process.stdout.readline()
        if not line:
            raise click.ClickException(f"the process for {self._folder} has ended")
        return json.loads(line)


def compare(old: Build, new: Build, job: Job, folder: Path | None, rounds: int, limit: float) -> np.ndarray:
    """Seconds of the rounds: an array of (round, build, clock), the old build and the processor first."""
    first = [build.seconds(job, folder, 1) for build in (old, new)]  # imports and allocates
    if sum(one[0] for one in first) < 1.0:
        first = [build.seconds(job, folder, 1) for build in (old, new)]
    spent = max(one[0] for one in first)
    count = max(1, ceil(ROUND / spent))
    rounds = min(rounds, max(FEWEST, int(limit / (2 * count * spent))))
    found = np.empty((rounds, 2, 2))
    for k in range(rounds):
        for which in (0, 1) if k % 2 else (1, 0):
            found[k, which] = (old, new)[which].seconds(job, folder, count)
    return found


def line(name: str, found: np.ndarray) -> tuple[float, str]:
    """The ratio, and the row as it is printed."""
    old, new = 1e3 * np.median(found[:, :, 0], axis=0)
    ratios = found[:, 1] / found[:, 0]
    low, ratio, high = np.quantile(ratios[:, 0], (0.25, 0.5, 0.75))
    wall = np.median(ratios[:, 1])
    told = f"{old:10.2f} {new:10.2f} {ratio:7.3f} {low:6.3f} {high:6.3f} {wall:7.3f} {len(found):6d}"
    return float(ratio), f"{name:<58} {told}"


def require_same(old: str, new: str) -> None:
    """Raise where the builds use kernels for different processors."""
    if old != new:
        raise click.ClickException(f"kernels differ: {old} and {new}")


_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


@click.command(help=__doc__)
@click.option("--old", "old_folder", type=_FOLDER, required=True, help="Folder with a build, as pip --target makes it.")
@click.option("--new", "new_folder", type=_FOLDER, required=True, help="Folder with the other build.")
@click.option("--data-dir", type=_FOLDER, default=None, help="Folder with the sets of the race, and housing.")
@click.option("--only", default="", help="A regular expression: rows whose name has it.")
@click.option("--rounds", type=click.IntRange(1), default=21, show_default=True, help="Of each row.")
@click.option("--seconds", type=float, default=5.0, show_default=True, help="A row that takes longer has fewer rounds.")
@click.option(
    "--pairs", type=click.IntRange(1), default=1, show_default=True, help="Of processes, one after the other."
)
@click.option("--core", type=int, default=-1, show_default=True, help="Which of the cores to use.")
def main(
    old_folder: Path,
    new_folder: Path,
    data_dir: Path | None,
    only: str,
    rounds: int,
    seconds: float,
    pairs: int,
    core: int,
) -> None:
    core = sorted(os.sched_getaffinity(0))[core]
    rows = [job for job in jobs(data_dir is not None) if re.search(only, job.name)]
    print(f"{len(rows)} rows, {rounds} rounds at most, {pairs} pairs of processes")
    print(f"{'':<58} {'old ms':>10} {'new ms':>10} {'ratio':>7} {'25 %':>6} {'75 %':>6} {'wall':>7} {'rounds':>6}")
    slower = []
    for _, group in groupby(rows, key=lambda job: job.data):
        found: list[tuple[Job, list[np.ndarray]]] = [(job, []) for job in group]
        for left in reversed(range(pairs)):
            with Build(old_folder, core) as old, Build(new_folder, core) as new:
                require_same(old.kernels(), new.kernels())
                for job, seen in found:
                    seen.append(compare(old, new, job, data_dir, rounds, seconds))
                    if left == 0:
                        ratio, told = line(job.name, np.concatenate(seen))
                        print(told, flush=True)
                        slower += [told] if ratio > SLOWER else []
    print(f"\nslower by more than {100 * (SLOWER - 1):.0f} %: {len(slower)} of {len(rows)}", *slower, sep="\n")


if __name__ == "__main__":
    main()
