"""Which judge: each kind of problem has its own."""

from __future__ import annotations

from fenchel.certificate.judge import Judge
from fenchel.certificate.multiclass import MulticlassJudge
from fenchel.certificate.record import Record
from fenchel.problem import MulticlassProblem, Problem


def judge_of(problem: Problem | MulticlassProblem) -> Record:
    """A judge that has seen nothing yet."""
    return MulticlassJudge(problem) if isinstance(problem, MulticlassProblem) else Judge(problem)
