"""Progress bars for fits and paths."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

import numpy as np

from fenchel.certificate.certificate import closeness
from fenchel.problem import Statement
from fenchel.solver.result import Row, Stop


class Bar:
    """A rich progress bar, or none."""

    def __init__(self, description: str, enabled: bool) -> None:
        self._bar: Any = None
        if enabled:
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

            self._bar = Progress(
                TextColumn("[bold]{task.description}"),
                BarColumn(),
                TextColumn("{task.fields[state]}"),
                TimeElapsedColumn(),
            )
            self._task = self._bar.add_task(description, total=1.0, state="")

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def show(self, done: float, state: str) -> None:
        """Show the fraction done, and a short text."""
        if self._bar is not None:
            self._bar.update(self._task, completed=float(done), state=state)


class FitProgress(Bar):
    """Progress towards the tolerance, on a logarithmic scale of the gap."""

    def __init__(self, problem: Statement, solver: str, stop: Stop) -> None:
        n, d = problem.shape
        super().__init__(f"{solver} {n} x {d}", enabled=True)
        self._tol, self._atol, self._first = stop.tol, stop.atol, 0.0

    def update(self, row: Row) -> None:
        """Show a check."""
        if not np.isfinite(row.gap):
            return
        target = max(self._tol * abs(row.primal), self._atol, 1e-300)
        self._first = max(self._first, row.gap, 2.0 * target)
        done = np.log(self._first / max(row.gap, target)) / np.log(self._first / target)
        relative = row.gap / abs(row.primal) if row.primal else np.inf
        self.show(done, f"step {row.iteration}: objective at most {closeness(relative)} too high")
