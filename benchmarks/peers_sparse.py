"""The solvers of the race for penalties that make zeros: |w|_1, the elastic net, groups of columns, and paths.

Every peer minimises the mean loss plus lam R(w), without an intercept (benchmarks/objectives.py), after its own
translation: lam itself where it takes the mean of the losses, lam n or its inverse where it sums them. Weights of
groups are 1, also where the peer's own choice is another. A path goes through the peer's own function for it where
it has one; otherwise each fit begins where the last ended, if the peer can begin anywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.entrant import L1_RATIO, MANY, PATHS, Peer, Task, half_decades
from benchmarks.installed import use_own_folder

LASSO = ("lasso", "lasso_path")
LOGISTIC = ("sparse_logistic", "logistic_path")


def _columns(task: Task) -> Any:
    """X by columns, as solvers of this kind want it."""
    return sparse.csc_matrix(task.X) if sparse.issparse(task.X) else np.asfortranarray(task.X)


def _sizes(task: Task) -> list[int]:
    """The number of columns in each group."""
    return np.bincount(task.groups).tolist()


def _l1_ratio(task: Task) -> float:
    return L1_RATIO if task.loss == "elastic_net" else 1.0


def one_by_one(fit: Callable[[Task], Any]) -> Callable[[Task], Any]:
    """A path as separate fits, each from the beginning."""

    def run(task: Task) -> Any:
        return [np.ravel(fit(replace(task, lam=lam))) for lam in task.lams.tolist()]

    return run


def _celer(newton: bool) -> Callable[[Task], Any]:
    def run(task: Task) -> Any:
        from celer import celer_path

        lams, kind, options = task.lams, "lasso", {"l1_ratio": _l1_ratio(task), "prune": True}
        if task.loss in LOGISTIC:  # a sum of losses, where the others are means
            lams, kind, options = lams * task.y.size, "logreg", {"use_PN": newton}
        elif task.loss == "group_lasso":
            kind, options = "grouplasso", {"groups": _sizes(task), "prune": True}
        return celer_path(_columns(task), task.y, kind, alphas=lams, tol=task.tol, max_iter=1000, **options)[1].T

    return run


def celer_peers() -> list[Peer]:
    """celer: working sets with dual extrapolation; for the logistic loss also with Newton steps."""
    ladder = half_decades(1e-1, 1e-11)
    return [
        Peer("celer", "celer", (*LASSO, "elastic_net", *LOGISTIC, "group_lasso"), _celer(False), ladder),
        Peer("celer newton", "celer", LOGISTIC, _celer(True), ladder),
    ]


_SKGLM = ("skglm.estimators",)


def _skglm(task: Task) -> Any:
    from skglm.estimators import ElasticNet, GroupLasso, Lasso, SparseLogisticRegression

    settings = {"tol": task.tol, "fit_intercept": False, "max_iter": 1000}
    if task.loss == "lasso_path":
        return Lasso(**settings).path(_columns(task), task.y, task.lams)[1].T
    if task.loss == "logistic_path":
        model, found = SparseLogisticRegression(warm_start=True, **settings), []
        X = _columns(task)
        for lam in task.lams:
            found.append(model.set_params(alpha=lam).fit(X, task.y).coef_.ravel())
        return found
    if task.loss == "sparse_logistic":
        model = SparseLogisticRegression(alpha=task.lam, **settings)
    elif task.loss == "group_lasso":
        model = GroupLasso(_sizes(task), alpha=task.lam, **settings)
    elif task.loss == "elastic_net":
        model = ElasticNet(alpha=task.lam, l1_ratio=L1_RATIO, **settings)
    else:
        model = Lasso(alpha=task.lam, **settings)
    return model.fit(task.X, task.y).coef_


def skglm_peers() -> list[Peer]:
    """skglm: working sets with extrapolation of the weights; proximal Newton for the logistic loss."""
    losses = (*LASSO, "elastic_net", *LOGISTIC, "group_lasso")
    return [Peer("skglm sparse", "skglm", losses, _skglm, half_decades(1e-1, 1e-11), compiles=True, imports=_SKGLM)]


def _coordinate_descent(gram: bool) -> Callable[[Task], Any]:
    def run(task: Task) -> Any:
        from sklearn.linear_model import ElasticNet, Lasso, lasso_path

        settings = {"tol": task.tol, "max_iter": MANY, "precompute": gram}
        if task.loss == "lasso_path":
            return lasso_path(_columns(task), task.y, alphas=task.lams, **settings)[1].T
        if task.loss == "elastic_net":
            model = ElasticNet(alpha=task.lam, l1_ratio=L1_RATIO, fit_intercept=False, **settings)
        else:
            model = Lasso(alpha=task.lam, fit_intercept=False, **settings)
        return model.fit(task.X, task.y).coef_

    return run


def _lars(task: Task) -> Any:
    """Least angle regression from lam_max down to lam; between its knots the solution is linear in lam."""
    from sklearn.linear_model import lars_path, lars_path_gram

    settings = {"method": "lasso", "alpha_min": task.lam, "max_iter": MANY}
    if sparse.issparse(task.X):
        Gram = (task.X.T @ task.X).toarray()
        knots, _, coefs = lars_path_gram(task.X.T @ task.y, Gram, n_samples=task.y.size, **settings)
    else:
        knots, _, coefs = lars_path(task.X, task.y, **settings)
    W = np.zeros((task.lams.size, task.X.shape[1]))
    for j in np.flatnonzero(coefs.any(axis=1)):
        W[:, j] = np.interp(task.lams, knots[::-1], coefs[j, ::-1])
    return W


def _logistic_regression(solver: str) -> Callable[[Task], Any]:
    def run(task: Task) -> Any:
        from sklearn.linear_model import LogisticRegression

        settings = {"l1_ratio": 1.0, "tol": task.tol, "fit_intercept": False, "max_iter": MANY, "random_state": 0}
        warm = solver == "saga" and task.loss in PATHS
        model = LogisticRegression(solver=solver, warm_start=warm, **settings)
        return [model.set_params(C=1.0 / (lam * task.y.size)).fit(task.X, task.y).coef_[0] for lam in task.lams]

    return run


def sklearn_peers() -> list[Peer]:
    """scikit-learn: coordinate descent with and without the Gram matrix, least angles, LIBLINEAR's -s 6, SAGA."""
    fine, squares = half_decades(1e-1, 1e-10), (*LASSO, "elastic_net")
    gram = _coordinate_descent(True)
    return [
        Peer("coordinate descent", "scikit-learn", squares, _coordinate_descent(False), fine),
        Peer("coordinate descent gram", "scikit-learn", squares, gram, fine, factorises=True, dense_only=True),
        Peer("lars", "scikit-learn", LASSO, _lars, (1e-4,), factorises=True),
        Peer("LogisticRegression l1 liblinear", "scikit-learn", LOGISTIC, _logistic_regression("liblinear"), fine),
        Peer("LogisticRegression l1 saga", "scikit-learn", LOGISTIC, _logistic_regression("saga"), fine),
    ]


def _cyanure(task: Task) -> Any:
    from cyanure.estimators import Classifier, Regression

    settings = {"fit_intercept": False, "tol": task.tol, "max_iter": MANY, "verbose": False}
    settings |= {"n_threads": task.threads, "lambda_1": task.lam * _l1_ratio(task)}
    if task.loss in LOGISTIC:
        model = Classifier(loss="logistic", penalty="l1", **settings)
    elif task.loss == "elastic_net":
        model = Regression(penalty="elasticnet", lambda_2=task.lam * (1.0 - L1_RATIO), **settings)
    else:
        model = Regression(penalty="l1", **settings)
    return model.fit(task.X, task.y).coef_


def cyanure_peers() -> list[Peer]:
    """Cyanure with its own choice of solver.

    Its Lasso and L1Logistic add active sets beyond 1000 columns, in a pool of processes of their own, whose time no
    clock of the race would see: they do not take part.
    """
    losses = ("lasso", "elastic_net", "sparse_logistic")
    return [Peer("cyanure l1", "cyanure", losses, _cyanure, half_decades(1e-1, 1e-10))]


def _adelie(task: Task) -> Any:
    use_own_folder("adelie")
    import adelie

    X = _columns(task)
    logistic = task.loss in LOGISTIC
    model = adelie.glm.binomial((task.y + 1.0) / 2.0) if logistic else adelie.glm.gaussian(task.y)
    starts = np.arange(X.shape[1])
    if task.loss == "group_lasso":
        sizes = np.array(_sizes(task))
        starts = np.cumsum(sizes) - sizes
    state = adelie.grpnet(
        adelie.matrix.sparse(X, n_threads=task.threads) if sparse.issparse(X) else X,
        model,
        groups=starts,
        alpha=_l1_ratio(task),
        penalty=np.ones(starts.size),
        lmda_path=task.lams,
        tol=task.tol,
        irls_tol=task.tol,
        n_threads=task.threads,
        intercept=False,
        early_exit=False,
        progress_bar=False,
    )
    return state.betas.toarray()


def adelie_peers() -> list[Peer]:
    """adelie: coordinate descent by groups, along a path."""
    losses = (*LASSO, "elastic_net", *LOGISTIC, "group_lasso")
    return [Peer("adelie", "adelie", losses, _adelie, half_decades(1e-3, 1e-15))]


def _liblinear(task: Task) -> Any:
    from liblinear.liblinearutil import problem, train

    model = train(problem(task.y, sparse.csr_matrix(task.X)), f"-s 6 -c {task.C!r} -e {task.tol!r} -q")
    return model.get_labels()[0] * np.ctypeslib.as_array(model.w, (task.X.shape[1],))


def liblinear_peers() -> list[Peer]:
    """LIBLINEAR's own interface to newGLMNET; a path is separate fits."""
    return [
        Peer("liblinear -s 6", "liblinear-official", LOGISTIC, one_by_one(_liblinear), half_decades(1.0, 1e-8)),
    ]


def _glmnet(task: Task) -> Any:
    """glmnet divides targets by their deviation s and lam with them, which takes lam |w|^2 to (lam / s) |w|^2.

    So that the two parts come out as stated, lam and the ratio are set to lam (r + (1 - r) s) and lam r over that.
    """
    from glmnet import ElasticNet, LogitNet

    ratio, factor = _l1_ratio(task), 1.0
    if task.loss == "elastic_net":
        factor = ratio + (1.0 - ratio) * float(task.y.std())
    model = (LogitNet if task.loss in LOGISTIC else ElasticNet)(
        alpha=ratio / factor,
        lambda_path=task.lams * factor,
        standardize=False,
        fit_intercept=False,
        n_splits=0,
        tol=task.tol,
        max_iter=MANY,
    )
    return np.reshape(model.fit(task.X, task.y).coef_path_, (task.X.shape[1], -1)).T


def glmnet_peers() -> list[Peer]:
    """glmnet's Fortran, from Python."""
    losses = (*LASSO, "elastic_net", *LOGISTIC)
    return [Peer("glmnet", "python-glmnet", losses, _glmnet, half_decades(1e-3, 1e-15))]


def sparse_peers() -> list[Peer]:
    """Every peer for penalties that make zeros, the likely winners first."""
    return [
        *celer_peers(),
        *liblinear_peers(),
        *glmnet_peers(),
        *adelie_peers(),
        *sklearn_peers(),
        *cyanure_peers(),
        *skglm_peers(),
    ]
