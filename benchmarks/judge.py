"""The one judge of the race: the objective in float64 from the weights alone, against a certified lower bound.

    suboptimality(w) = (P(w) - D) / D,    D <= min P <= P(w),

where D is the dual value of a certified reference solution. It is never below the true relative suboptimality, and
above it by at most the reference's own gap, which is reported.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import fenchel as fl
from benchmarks.datasets import Data
from benchmarks.entrant import LOSSES, Peer, Task
from benchmarks.peers import fenchel_problem
from benchmarks.peers_sklearn import sklearn_peers
from benchmarks.worker import Worker

#: The relative gap that a reference is solved to.
TOL = 1e-9

#: The solvers to start a proof from where fenchel's own run out of time: tight, and quick on most data.
TIGHT = {
    "hinge": ("LinearSVC dual",),
    "squared_hinge": ("LinearSVC primal",),
    "logistic": ("LogisticRegression newton-cholesky", "LogisticRegression newton-cg"),
    "ridge": ("Ridge cholesky", "Ridge lsqr"),
}

_LOSS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "hinge": lambda y, z: np.maximum(0.0, 1.0 - y * z),
    "squared_hinge": lambda y, z: np.maximum(0.0, 1.0 - y * z) ** 2,
    "logistic": lambda y, z: np.logaddexp(0.0, -y * z),
    "ridge": lambda y, z: (z - y) ** 2 / 2.0,
}


def objective(X: Any, y: np.ndarray, loss: str, lam: float, w: np.ndarray) -> float:
    """P(w) = (1/n) sum_i loss(y_i, x_i' w) + (lam/2) |w|^2."""
    if w.shape != (X.shape[1],) or not np.isfinite(w).all():
        return np.inf
    return float(np.mean(_LOSS[loss](y, X @ w)) + lam / 2.0 * (w @ w))


@dataclass(frozen=True)
class Reference:
    """The value of a solution and the dual bound that proves how good it is."""

    primal: float
    dual: float

    @property
    def relative_gap(self) -> float:
        return (self.primal - self.dual) / self.dual if self.dual > 0 else np.inf

    def suboptimality(self, value: float) -> float:
        """How far a value of the objective is above the optimum at most, relative to it."""
        return (value - self.dual) / self.dual if self.dual > 0 else np.inf


def reference(data: Data, loss: str, lam: float, cache: Path, limit: float) -> Reference:
    """The certified solution of a problem, from the cache folder or computed in a process of its own.

    Parameters
    ----------
    limit : seconds that each attempt may take
    """
    kept = cache / f"reference-{_fingerprint(data, loss, lam)}.json"
    if kept.exists():
        return Reference(**json.loads(kept.read_text()))
    attempts = [Peer("reference", "fenchel", LOSSES, _proven_solution(limit), (TOL,), compiles=True)]
    attempts += [_proven(peer) for peer in sklearn_peers() if peer.name in TIGHT[loss] and peer.takes(data.X, loss)]
    found = Reference(np.inf, -np.inf)
    for attempt in attempts:
        worker = Worker({attempt.name: attempt}, data.X, data.y, threads=1)
        run = worker.fit(attempt, loss, lam, attempt.ladder[-1], 10 * limit)
        worker.stop()
        if run.w is not None:
            found = Reference(min(found.primal, run.w[0]), max(found.dual, run.w[1]))
        if found.relative_gap <= TOL:
            break
    if np.isfinite(found.relative_gap):
        cache.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(asdict(found)))
    return found


def _proven_solution(limit: float) -> Callable[[Task], Any]:
    """fenchel's own solution, as (primal, dual)."""

    def fit(task: Task) -> Any:
        found = fl.solve(fenchel_problem(task), tol=task.tol, max_seconds=limit, warn=False).certificate
        return [found.primal, found.dual]

    return fit


def _proven(peer: Peer) -> Peer:
    """A peer's solution, as (primal, dual) after as much work on the proof as it takes."""

    def fit(task: Task) -> Any:
        w = np.ravel(peer.fit(task))
        found = fl.certify(fenchel_problem(task), w, effort="high", tol=TOL)
        return [found.primal, found.dual]

    return Peer(f"certified {peer.name}", "fenchel", peer.losses, fit, peer.ladder, compiles=True)


def _fingerprint(data: Data, loss: str, lam: float) -> str:
    """A name that changes with the data, the loss or lam."""
    X = data.X
    parts = (X.data, X.indices, X.indptr) if sparse.issparse(X) else (X,)
    digest = hashlib.sha256(f"{X.shape} {loss} {lam!r}".encode())
    for part in (*parts, data.y):
        digest.update(np.ascontiguousarray(part).data)
    return f"{data.name}-{loss}-{digest.hexdigest()[:16]}"
