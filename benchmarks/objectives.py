"""What is raced, by name: a mean loss plus a penalty, in NumPy for the judge and in fenchel's words for the proof.

    P(w) = (1/n) sum_i loss(y_i, x_i' w) + lam R(w),    no intercept

Regressions have the labels -1 and +1 as targets. R is |w|^2 / 2, |w|_1, the elastic net with half of each, or the sum
of |w_g|_2 over groups of columns. A path is one objective at many lam: every point has to reach the target.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import fenchel as fl
from benchmarks.datasets import Data
from benchmarks.entrant import L1_RATIO, PATH_RATIO, Task

Scores = Callable[[np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Objective:
    """A loss and a penalty.

    Attributes
    ----------
    loss : (y, z) -> the losses of the samples
    penalty : (w, groups) -> R(w)
    fenchel_loss : the loss in fenchel's words
    fenchel_penalty : (lam, groups) -> lam R in fenchel's words
    sparse : whether R makes zeros; lam is then stated as a part of lam_max, otherwise in multiples of 1/n
    path : whether it is solved for many lam
    grouped : whether the data must come with groups
    """

    loss: Scores
    penalty: Callable[[np.ndarray, Any], float]
    fenchel_loss: Any
    fenchel_penalty: Callable[[float, Any], Any]
    sparse: bool = False
    path: bool = False
    grouped: bool = False

    def levels(self, given: Sequence[float]) -> Sequence[float]:
        """The numbers that state lam, of those given; a path has its own end."""
        return (PATH_RATIO,) if self.path else given

    def label(self, level: float) -> str:
        """What the tables call lam."""
        return f"max..max/{level:g}" if self.path else f"max/{level:g}" if self.sparse else f"{level:g}/n"

    def lam(self, data: Data, level: float) -> float:
        """lam, for a path the smallest."""
        if not self.sparse:
            return level / data.y.size
        unit = fl.Problem(data.X, data.y, self.fenchel_loss, self.fenchel_penalty(1.0, data.groups))
        return unit.lam_max() / level


def _hinge(y: np.ndarray, z: np.ndarray) -> np.ndarray:
    return np.maximum(0.0, 1.0 - y * z)


def _squared(y: np.ndarray, z: np.ndarray) -> np.ndarray:
    return (z - y) ** 2 / 2.0


def _logistic(y: np.ndarray, z: np.ndarray) -> np.ndarray:
    return np.logaddexp(0.0, -y * z)


def _l2(loss: Scores, fenchel_loss: Any) -> Objective:
    return Objective(loss, lambda w, _: (w @ w) / 2.0, fenchel_loss, lambda lam, _: fl.penalties.L2(lam))


_LASSO = Objective(
    _squared, lambda w, _: np.abs(w).sum(), fl.losses.Squared(), lambda lam, _: fl.penalties.L1(lam), sparse=True
)
_SPARSE_LOGISTIC = replace(_LASSO, loss=_logistic, fenchel_loss=fl.losses.Logistic())

OBJECTIVES = {
    "hinge": _l2(_hinge, fl.losses.Hinge()),
    "squared_hinge": _l2(lambda y, z: _hinge(y, z) ** 2, fl.losses.SquaredHinge()),
    "logistic": _l2(_logistic, fl.losses.Logistic()),
    "ridge": _l2(_squared, fl.losses.Squared()),
    "lasso": _LASSO,
    "elastic_net": replace(
        _LASSO,
        penalty=lambda w, _: L1_RATIO * np.abs(w).sum() + (1.0 - L1_RATIO) / 2.0 * (w @ w),
        fenchel_penalty=lambda lam, _: fl.penalties.ElasticNet(lam, L1_RATIO),
    ),
    "sparse_logistic": _SPARSE_LOGISTIC,
    "group_lasso": replace(
        _LASSO,
        penalty=lambda w, groups: np.sqrt(np.bincount(groups, w * w)).sum(),
        fenchel_penalty=fl.penalties.GroupL2,
        grouped=True,
    ),
    "lasso_path": replace(_LASSO, path=True),
    "logistic_path": replace(_SPARSE_LOGISTIC, path=True),
}


def task_of(data: Data, loss: str, lam: float, tol: float, threads: int = 1) -> Task:
    """What a solver is asked to do with the data."""
    return Task(data.X, data.y, loss, lam, tol, threads, data.groups)


def objective(task: Task, w: np.ndarray) -> np.ndarray:
    """P(w) for each of the task's lam, of weights that follow each other; infinite where they are none."""
    stated, lams = OBJECTIVES[task.loss], task.lams
    if w.size != lams.size * task.X.shape[1] or not np.isfinite(w).all():
        return np.full(lams.size, np.inf)
    W = w.reshape(lams.size, -1)
    losses = [np.mean(stated.loss(task.y, z)) for z in (task.X @ W.T).T]
    return np.array([loss + lam * stated.penalty(v, task.groups) for loss, lam, v in zip(losses, lams, W, strict=True)])


def fenchel_problems(task: Task) -> Iterator[fl.Problem]:
    """The task in fenchel's words, at each of its lam."""
    stated = OBJECTIVES[task.loss]
    first, *others = (stated.fenchel_penalty(lam, task.groups) for lam in task.lams)
    problem = fl.Problem(task.X, task.y, stated.fenchel_loss, first)
    yield problem
    for penalty in others:
        yield problem.replace(penalty=penalty)
