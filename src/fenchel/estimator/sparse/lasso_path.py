"""Coefficients of the elastic net along a path of alphas, with the signature of scikit-learn's `path`."""

from __future__ import annotations

from functools import partial

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import check_consistent_length

from fenchel.data.convert import as_vector
from fenchel.data.typing import Matrix, MatrixLike, Seed, Vector, VectorLike
from fenchel.estimator.base import SolverLike, StartLike, in_single_precision, is_single, warn_short
from fenchel.estimator.objective import check_hints, elastic, l1_ratio_of
from fenchel.estimator.search.cross_validation import alpha_grid, alphas_of, follow, require_ends
from fenchel.estimator.sparse.gram import require_gram
from fenchel.problem import Problem
from fenchel.problem.losses import Squared
from fenchel.solver.solve import Clock


def elastic_net_path(
    X: MatrixLike,
    y: VectorLike,
    *,
    l1_ratio: float = 0.5,
    eps: float = 1e-3,
    n_alphas: int | None = None,
    alphas: VectorLike | None = None,
    precompute: object = "auto",
    Xy: object = None,
    copy_X: bool = True,
    coef_init: VectorLike | None = None,
    verbose: bool = False,
    return_n_iter: bool = False,
    positive: bool = False,
    check_input: bool = True,
    tol: float = 1e-4,
    max_iter: int | None = None,
    random_state: Seed = None,
    selection: str = "cyclic",
    solver: SolverLike = "auto",
) -> tuple[Vector, Matrix, Vector] | tuple[Vector, Matrix, Vector, list[int]]:
    """Weights of the elastic net without an intercept for each alpha, with warm starts.

    Minimises 1/(2n) sum_i (x_i.w - y_i)^2 + alpha (l1_ratio |w|_1 + (1 - l1_ratio)/2 |w|_2^2).

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d)
    y : array of n targets
    l1_ratio : float, default 0.5
        1 is the Lasso.
    eps : float, default 1e-3
        The smallest alpha relative to the largest.
    n_alphas : int, optional
    alphas : int or array of positive numbers, default 100
        The number of alphas, from the smallest one with w = 0 down to eps times that; or the alphas.
    coef_init : array of d weights, optional
        The start of the first solve.
    return_n_iter : bool, default False
    tol, max_iter, random_state, solver
        As in `ElasticNet`.
    precompute, Xy, copy_X, check_input, selection
        Hints to scikit-learn's algorithm; they have no effect on the minimiser.
    positive : bool, default False
        Whether weights must not be negative.
    verbose : bool, default False
        Show a progress bar for each alpha.

    Returns
    -------
    alphas : array, the largest first
    coefs : array of shape (d, alphas)
    dual_gaps : array of the certified gaps
    n_iters : list of steps, if `return_n_iter`
    """
    check_hints(selection, positive, precompute, copy_X)
    ratio, asked = l1_ratio_of(l1_ratio), alphas_of(alphas, n_alphas)
    require_ends(asked, [ratio], eps)
    features = check_array(X, accept_sparse=["csr", "csc"], dtype=[np.float64, np.float32])
    check_consistent_length(features, y)
    if not isinstance(precompute, bool | np.bool_ | str | None):
        require_gram(precompute, features)
    if np.ndim(y) != 1:
        raise ValueError(f"y must be a vector of targets, got shape {np.shape(y)}; follow one path for each target")
    problem = Problem(features, as_vector(y, features.shape[0], "y"), Squared(), elastic(1.0, ratio, positive))
    grid = alpha_grid([problem], asked, eps)
    options = {"tol": tol, "max_iter": max_iter, "random_state": random_state, "solver": solver}
    options["progress"] = bool(verbose)
    start: StartLike = None
    if coef_init is not None:
        start = (np.asarray(coef_init), 0.0, np.zeros(problem.shape[0]))
    coefs, results = np.empty((problem.shape[1], len(grid)), dtype=features.dtype), []
    for k, found in follow(problem, [elastic(alpha, ratio, positive) for alpha in grid], options, start):
        result = found
        if is_single(problem.design):
            (result,) = in_single_precision([problem], [found], options, Clock(None))
        coefs[:, k] = result.w
        results.append(result.without_data())
    warn_short(results, "alphas")
    gaps = np.array([result.certificate.gap for result in results])
    counts = [result.n_iter for result in results]
    return (grid, coefs, gaps, counts) if return_n_iter else (grid, coefs, gaps)


lasso_path = partial(elastic_net_path, l1_ratio=1.0)
