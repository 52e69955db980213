"""scikit-learn's solvers of the race."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.entrant import MANY, Peer, Task, half_decades


def _sklearn_svc(dual: bool) -> Callable[[Task], Any]:
    def run(task: Task) -> Any:
        from sklearn.svm import LinearSVC

        settings = {"C": task.C, "tol": task.tol, "fit_intercept": False, "max_iter": MANY, "dual": dual}
        return LinearSVC(loss=task.loss, random_state=0, **settings).fit(task.X, task.y).coef_

    return run


def _sklearn_svr(dual: bool) -> Callable[[Task], Any]:
    def run(task: Task) -> Any:
        from sklearn.svm import LinearSVR

        # its loss is the whole square, ours is half of it
        settings = {"C": task.C / 2, "tol": task.tol, "fit_intercept": False, "max_iter": MANY, "dual": dual}
        model = LinearSVR(epsilon=0.0, loss="squared_epsilon_insensitive", random_state=0, **settings)
        return model.fit(task.X, task.y).coef_

    return run


def _sklearn_logistic(solver: str, dual: bool = False) -> Callable[[Task], Any]:
    def run(task: Task) -> Any:
        from sklearn.linear_model import LogisticRegression

        settings = {"C": task.C, "tol": task.tol, "fit_intercept": False, "max_iter": MANY, "dual": dual}
        return LogisticRegression(solver=solver, random_state=0, **settings).fit(task.X, task.y).coef_

    return run


def _sklearn_ridge(solver: str) -> Callable[[Task], Any]:
    def run(task: Task) -> Any:
        from sklearn.linear_model import Ridge

        settings = {"alpha": task.alpha, "tol": task.tol, "fit_intercept": False, "max_iter": MANY}
        return Ridge(solver=solver, random_state=0, **settings).fit(task.X, task.y).coef_

    return run


def sklearn_peers() -> list[Peer]:
    """LinearSVC, LogisticRegression with each solver, Ridge with each solver, LinearSVR without its tube."""
    usual, fine, direct = half_decades(1e-1, 1e-8), half_decades(1e-1, 1e-10), (1e-4,)
    peers = [
        Peer("LinearSVC dual", "scikit-learn", ("hinge", "squared_hinge"), _sklearn_svc(True), usual),
        Peer("LinearSVC primal", "scikit-learn", ("squared_hinge",), _sklearn_svc(False), fine),
        Peer(
            "LogisticRegression liblinear dual",
            "scikit-learn",
            ("logistic",),
            _sklearn_logistic("liblinear", True),
            usual,
        ),
        Peer("LinearSVR dual", "scikit-learn", ("ridge",), _sklearn_svr(True), fine),
        Peer("LinearSVR primal", "scikit-learn", ("ridge",), _sklearn_svr(False), fine),
    ]
    for solver in ("newton-cholesky", "lbfgs", "liblinear", "newton-cg", "sag", "saga"):
        name, fit = f"LogisticRegression {solver}", _sklearn_logistic(solver)
        peers.append(Peer(name, "scikit-learn", ("logistic",), fit, fine, factorises=solver == "newton-cholesky"))
    for solver in ("cholesky", "svd", "sparse_cg", "lsqr", "sag", "saga"):
        exact = solver in ("cholesky", "svd")
        ladder = direct if exact else fine
        name, fit = f"Ridge {solver}", _sklearn_ridge(solver)
        peers.append(Peer(name, "scikit-learn", ("ridge",), fit, ladder, factorises=exact, dense_only=solver == "svd"))
    return peers
