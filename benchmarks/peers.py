"""The solvers that take part in the race: each fits one objective, at one tolerance.

Here are fenchel's, and the peers that minimise

    P(w) = (1/n) sum_i loss(y_i, x_i' w) + (lam/2) |w|^2,    no intercept,

after its own translation of lam: C = 1 / (lam n) where the peer sums the losses beside |w|^2 / 2, alpha = lam n
where it sums them beside (alpha/2) |w|^2, lam itself where it takes the mean. tests/benchmarks checks each.
benchmarks/peers_sparse.py has those for penalties that make zeros.

Not here: celer, which has no penalty without an L1 part; SGD, whose tolerance is not about the optimum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from scipy import sparse

import fenchel as fl
from benchmarks.entrant import LOSSES, MANY, SPARSE, Peer, Task, half_decades
from benchmarks.installed import use_own_folder
from benchmarks.objectives import fenchel_problems
from benchmarks.peers_sklearn import sklearn_peers
from benchmarks.peers_sparse import sparse_peers


def _fenchel(solver: str) -> Callable[[Task], Any]:
    """`fenchel.solve`, or `fenchel.path` where there are many lam."""

    def run(task: Task) -> Any:
        problem, options = next(fenchel_problems(task)), {"tol": task.tol, "n_threads": task.threads, "warn": False}
        if len(task.lams) == 1:
            return fl.solve(problem, solver, **options).w
        return fl.path(problem, lams=task.lams, solver=solver, **options).coefs.T

    return run


def fenchel_peers(solvers: Iterable[str]) -> list[Peer]:
    """fenchel itself, once for each of its solvers, through its public interface."""
    ladder, losses = half_decades(1.0, 1e-8), (*LOSSES, *SPARSE)
    return [Peer(f"fenchel {solver}", "fenchel", losses, _fenchel(solver), ladder) for solver in solvers]


def _liblinear(kind: int, multicore: bool) -> Callable[[Task], Any]:
    def run(task: Task) -> Any:
        if multicore:
            use_own_folder("liblinear-multicore")
        from liblinear.liblinearutil import problem, train

        X = sparse.csr_matrix(task.X)
        C = task.C / 2 if task.loss == "ridge" else task.C
        options = f"-s {kind} -c {C!r} -e {task.tol!r} -q" + (" -p 0" if task.loss == "ridge" else "")
        if multicore and kind in (0, 1, 2, 3, 11):
            options += f" -m {task.threads}"
        model = train(problem(task.y, X), options)
        sign = 1.0 if task.loss == "ridge" else model.get_labels()[0]
        return sign * np.ctypeslib.as_array(model.w, (X.shape[1],))

    return run


def liblinear_peers() -> list[Peer]:
    """LIBLINEAR's own interface: the coordinate ascent in the dual and the Newton method in the primal."""
    kinds = {"hinge": (3,), "squared_hinge": (1, 2), "logistic": (0, 7), "ridge": (11, 12)}
    usual = half_decades(1.0, 1e-8)
    peers = []
    for multicore in (False, True):
        package = "liblinear-multicore" if multicore else "liblinear-official"
        short = "multicore" if multicore else "liblinear"
        for loss, numbers in kinds.items():
            for kind in numbers:
                name, fit = f"{short} -s {kind}", _liblinear(kind, multicore)
                peers.append(Peer(name, package, (loss,), fit, usual))
    return peers


def _snapml(dual: bool) -> Callable[[Task], Any]:
    def run(task: Task) -> Any:
        import snapml

        settings = {"regularizer": task.alpha, "tol": task.tol, "max_iter": MANY, "n_jobs": task.threads}
        if task.loss in ("hinge", "squared_hinge"):
            model = snapml.SupportVectorMachine(loss=task.loss, **settings)
        elif task.loss == "logistic":
            model = snapml.LogisticRegression(dual=dual, **settings)
        else:
            model = snapml.LinearRegression(dual=dual, **settings)
        X = task.X
        if sparse.issparse(X):  # it knows scipy's matrices, not its arrays; rows for the dual, columns for the primal
            X = sparse.csr_matrix(X) if dual else sparse.csc_matrix(X)
        return model.fit(X, task.y).coef_

    return run


def snapml_peers() -> list[Peer]:
    """IBM Snap ML on the processor."""
    ladder = half_decades(1e-1, 1e-11)
    return [
        Peer("snapml dual", "snapml", LOSSES, _snapml(True), ladder),
        Peer("snapml primal", "snapml", ("logistic", "ridge"), _snapml(False), ladder),
    ]


def _cyanure(task: Task) -> Any:
    from cyanure.estimators import Classifier, Regression

    settings = {"penalty": "l2", "fit_intercept": False, "tol": task.tol, "max_iter": MANY, "verbose": False}
    if task.loss == "ridge":
        model = Regression(lambda_1=task.lam, n_threads=task.threads, **settings)
    elif task.loss == "logistic":
        model = Classifier(loss="logistic", lambda_1=task.lam, n_threads=task.threads, **settings)
    else:  # its squared hinge is half of ours
        model = Classifier(loss="sqhinge", lambda_1=task.lam / 2, n_threads=task.threads, **settings)
    return model.fit(task.X, task.y).coef_


def cyanure_peers() -> list[Peer]:
    """Cyanure with its own choice of solver."""
    losses = ("squared_hinge", "logistic", "ridge")
    return [Peer("cyanure auto", "cyanure", losses, _cyanure, half_decades(1e-1, 1e-8))]


_SKGLM = ("skglm.datafits", "skglm.estimators", "skglm.penalties", "skglm.solvers")


def _skglm(task: Task) -> Any:
    from skglm.datafits import Logistic, Quadratic
    from skglm.estimators import LinearSVC
    from skglm.penalties import L2, L1_plus_L2
    from skglm.solvers import LBFGS, AndersonCD

    if task.loss == "hinge":
        return LinearSVC(C=task.C, tol=task.tol, fit_intercept=False, max_iter=1000).fit(task.X, task.y).coef_
    X = task.X.tocsc() if sparse.issparse(task.X) else np.asfortranarray(task.X)
    if task.loss == "logistic":
        return LBFGS(max_iter=MANY, tol=task.tol).solve(X, task.y, Logistic(), L2(task.lam))[0]
    solver = AndersonCD(tol=task.tol, fit_intercept=False, max_iter=1000)
    return solver.solve(X, task.y, Quadratic(), L1_plus_L2(task.lam, l1_ratio=0.0))[0]


def skglm_peers() -> list[Peer]:
    """skglm: coordinate descent for the hinge (in the dual) and for ridge, L-BFGS for the logistic loss."""
    losses = ("hinge", "logistic", "ridge")
    return [Peer("skglm", "skglm", losses, _skglm, half_decades(1e-1, 1e-10), compiles=True, imports=_SKGLM)]


def all_peers() -> list[Peer]:
    """Every peer, the likely winners first: their times bound how long the others are worth waiting for."""
    return [
        *liblinear_peers(),
        *snapml_peers(),
        *sklearn_peers(),
        *cyanure_peers(),
        *skglm_peers(),
        *sparse_peers(),
    ]
