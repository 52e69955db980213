"""explain: which solver "auto" takes, and why."""

from __future__ import annotations

from dataclasses import dataclass

from fenchel.draw.tables import table
from fenchel.problem import Statement
from fenchel.problem.checks import require_flag
from fenchel.solver.result import Stop
from fenchel.steps.choose import reasons


@dataclass(frozen=True)
class Explanation:
    """Which solver "auto" takes for a problem, and why not the others.

    Attributes
    ----------
    solver : str
        The one that is taken.
    reasons : dict
        For every solver, in the order in which they are asked: what it is for, or what keeps it from the problem.
    """

    solver: str
    reasons: dict[str, str]

    def __str__(self) -> str:
        rows = [("->" if name == self.solver else "", name, reason) for name, reason in self.reasons.items()]
        return table(("", "solver", "why"), rows, left=True)


def explain(problem: Statement, tol: float = 1e-4, *, path: bool = False) -> Explanation:
    """Say which solver "auto" takes for a problem, and why.

    Parameters
    ----------
    problem : Problem or MulticlassProblem
    tol : float, default 1e-4
        The relative gap that will be asked for: some solvers are quicker to a rough model, others to an exact one.
    path : bool, default False
        Whether many lams are to be solved for, as by `path`.

    Returns
    -------
    Explanation
        It prints as a table.
    """
    if not isinstance(problem, Statement):
        raise TypeError(f"problem must be a fenchel.Problem, got {type(problem).__name__}")
    require_flag(path, "path")
    return Explanation(*reasons(problem, Stop(tol).tol, path))
