"""The best margin by the conic solver, and margins in exact arithmetic."""

import warnings

import cvxpy as cp
import numpy as np


def rows_of(X, codes):
    """Differences of scores as rows, those of intercepts beside them: y_i x_i for two classes."""
    X, k = np.asarray(X, dtype=np.float64), int(codes.max()) + 1
    if k == 2:
        y = 2.0 * codes - 1.0
        return y[:, None] * X, y[:, None]
    A, E = [], []
    for x, own in zip(X, codes, strict=True):
        for other in range(k):
            if other != own:
                e = np.zeros(k)
                e[own], e[other] = 1.0, -1.0
                A.append(np.kron(e, x))
                E.append(e)
    return np.array(A), np.array(E)


def best_margin(X, codes, p, intercept):
    """max t subject to a_r.w + e_r.b >= t and |w|_p <= 1, at 1e-9."""
    A, E = rows_of(X, codes)
    scale = np.abs(A).max()
    A = A / scale
    w, b, t = cp.Variable(A.shape[1]), cp.Variable(E.shape[1]), cp.Variable()
    scores = A @ w + (E @ b if intercept else 0.0)
    limits = [scores >= t, cp.norm(w, p) <= 1.0]
    problem = cp.Problem(cp.Maximize(t), [*limits, *([b[0] == 0.0] if E.shape[1] > 1 else [])])
    accurate = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-09)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Solution may be inaccurate")  # short of 1e-9, still far below 1e-6
        problem.solve(solver=cp.CLARABEL, **accurate)
    return float(problem.value) * scale


def random_classes(rng, separable, k):
    """Points of k classes, some of which no hyperplane separates."""
    n, d = int(rng.integers(3 * k, 25)), int(rng.integers(2, 7))
    X = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-2, 3) + rng.normal(size=d)
    codes = (
        np.argmax(X @ rng.normal(size=(d, k)) + rng.normal(size=k), axis=1) if separable else rng.integers(k, size=n)
    )
    codes[:k] = np.arange(k) if len(np.unique(codes)) < k else codes[:k]
    return X, codes
