"""The one judge of the race: the objective in float64 from the weights alone, against a certified lower bound.

    suboptimality(w) = (P(w) - D) / D,    D <= min P <= P(w),

where D is the dual value of a certified reference solution. It is never below the true relative suboptimality, and
above it by at most the reference's own gap, which is reported.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import fenchel as fl
from benchmarks.datasets import Data
from benchmarks.entrant import LOSSES, SPARSE, Peer, Task
from benchmarks.installed import version
from benchmarks.objectives import fenchel_problems
from benchmarks.peers import all_peers
from benchmarks.worker import Worker

#: The relative gap that a reference is solved to.
TOL = 1e-9

#: Seconds for the proof of a path, as a multiple of those for one lam.
PATH_SECONDS = 5.0

#: The solvers to start a proof from where fenchel's own run out of time: tight, and quick on most data.
TIGHT = {
    "hinge": ("LinearSVC dual",),
    "squared_hinge": ("LinearSVC primal",),
    "logistic": ("LogisticRegression newton-cholesky", "LogisticRegression newton-cg"),
    "ridge": ("Ridge cholesky", "Ridge lsqr"),
    "lasso": ("celer",),
    "elastic_net": ("celer", "ElasticNet"),
    "sparse_logistic": ("celer newton", "liblinear -s 6"),
    "group_lasso": ("celer",),
    "lasso_path": ("celer",),
    "logistic_path": ("celer newton",),
}


@dataclass(frozen=True)
class Reference:
    """The values of a solution, one for every lam, and the dual bounds that prove how good it is."""

    primal: np.ndarray
    dual: np.ndarray

    @property
    def relative_gap(self) -> float:
        return self.suboptimality(self.primal)

    def suboptimality(self, value: Any) -> float:
        """How far values of the objective are above the optimum at most, relative to it: the worst of them."""
        if not np.all(self.dual > 0):
            return np.inf
        return float(np.max((value - self.dual) / self.dual))


def reference(data: Data, loss: str, lam: float, cache: Path, limit: float) -> Reference:
    """The certified solution of a problem, from the cache folder or computed in a process of its own.

    Parameters
    ----------
    limit : seconds that each attempt may take
    """
    kept = cache / f"reference-{_fingerprint(data, loss, lam)}.json"
    if kept.exists():
        return Reference(**{name: np.array(values) for name, values in json.loads(kept.read_text()).items()})
    attempts = [Peer("reference", "fenchel", (*LOSSES, *SPARSE), _proven_solution(limit), (TOL,), compiles=True)]
    attempts += [
        _proven(peer)
        for peer in all_peers()
        if peer.name in TIGHT[loss] and peer.takes(data.X, loss) and version(peer.package) is not None
    ]
    found = Reference(np.array(np.inf), np.array(-np.inf))
    for attempt in attempts:
        worker = Worker({attempt.name: attempt}, data, threads=1)
        run = worker.fit(attempt, loss, lam, attempt.ladder[-1], 10 * limit)
        worker.stop()
        if run.w is not None:
            primal, dual = run.w.reshape(2, -1)
            found = Reference(np.minimum(found.primal, primal), np.maximum(found.dual, dual))
        if found.relative_gap <= TOL:
            break
    if np.isfinite(found.relative_gap):
        cache.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps({"primal": found.primal.tolist(), "dual": found.dual.tolist()}))
    return found


def _proven_solution(limit: float) -> Callable[[Task], Any]:
    """fenchel's own solution, as (primal, dual); along a path each begins where the last ended."""

    def fit(task: Task) -> Any:
        seconds = limit if task.lams.size == 1 else PATH_SECONDS * limit / task.lams.size
        last, found = None, []
        for problem in fenchel_problems(task):
            last = fl.solve(problem, tol=task.tol, start=last, max_seconds=seconds, warn=False)
            found.append((last.certificate.primal, last.certificate.dual))
        return np.transpose(found)

    return fit


def _proven(peer: Peer) -> Peer:
    """A peer's solution, as (primal, dual) after as much work on the proof as it takes."""

    def fit(task: Task) -> Any:
        W = np.reshape(peer.fit(task), (task.lams.size, -1))
        pairs = zip(fenchel_problems(task), W, strict=True)
        certificates = [fl.certify(problem, w, effort="high", tol=TOL) for problem, w in pairs]
        return np.transpose([(found.primal, found.dual) for found in certificates])

    return Peer(f"certified {peer.name}", "fenchel", peer.losses, fit, peer.ladder, compiles=True)


def _fingerprint(data: Data, loss: str, lam: float) -> str:
    """A name that changes with the data, their groups, the objective or lam."""
    X = data.X
    parts = (X.data, X.indices, X.indptr) if sparse.issparse(X) else (X,)
    digest = hashlib.sha256(f"{X.shape} {loss} {lam!r}".encode())
    groups = () if data.groups is None else (data.groups,)
    for part in (*parts, data.y, *groups):
        digest.update(np.ascontiguousarray(part).data)
    return f"{data.name}-{loss}-{digest.hexdigest()[:16]}"
