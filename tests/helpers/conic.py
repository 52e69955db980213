"""The same problems, stated for a conic solver: an oracle that shares no code with fenchel."""

import warnings

import cvxpy as cp
import numpy as np

from fenchel.problem import losses, penalties
from fenchel.problem.vectors import p_norm


def _insensitive(r, epsilon):
    return cp.pos(cp.abs(r) - epsilon)


LOSS = {
    losses.Hinge: lambda f, z, y: cp.pos(1 - cp.multiply(y, z)),
    losses.SmoothedHinge: lambda f, z, y: cp.huber(cp.pos(1 - cp.multiply(y, z)), f.gamma) / (2 * f.gamma),
    losses.SquaredHinge: lambda f, z, y: cp.square(cp.pos(1 - cp.multiply(y, z))),
    losses.Logistic: lambda f, z, y: cp.logistic(-cp.multiply(y, z)),
    losses.Exponential: lambda f, z, y: cp.exp(-cp.multiply(y, z)),
    losses.Squared: lambda f, z, y: cp.square(z - y) / 2,
    losses.Absolute: lambda f, z, y: cp.abs(z - y),
    losses.Pinball: lambda f, z, y: cp.maximum(f.tau * (y - z), (1 - f.tau) * (z - y)),
    losses.EpsilonInsensitive: lambda f, z, y: _insensitive(z - y, f.epsilon),
    losses.SquaredEpsilonInsensitive: lambda f, z, y: cp.square(_insensitive(z - y, f.epsilon)),
    losses.Huber: lambda f, z, y: cp.huber(z - y, f.delta) / 2,
}
PENALTY = {
    penalties.L2: lambda r, w: (r.lam / 2 * cp.sum_squares(w), []),
    penalties.L1: lambda r, w: (r.lam * cp.norm1(w), []),
    penalties.ElasticNet: lambda r, w: (
        r.lam * (r.l1_ratio * cp.norm1(w) + (1 - r.l1_ratio) / 2 * cp.sum_squares(w)),
        [],
    ),
    penalties.LpSquared: lambda r, w: (
        r.lam / 2 * cp.square(cp.pnorm(w, r.p, approx=False)),
        [] if r.radius is None else [cp.pnorm(w, r.p, approx=False) <= r.radius],
    ),
    penalties.GroupL2: lambda r, w: (_groups(r, w), []),
    penalties.SparseGroup: lambda r, w: (
        r.lam * r.l1_ratio * cp.norm1(w) + (1 - r.l1_ratio) * _groups(r, w),
        [],
    ),
    penalties.FusedL1: lambda r, w: (r.lam * cp.norm1(cp.diff(w) if r.D is None else r.operator @ w), []),
    penalties.Entropy: lambda r, w: (-r.lam * cp.sum(cp.entr(w)), [cp.sum(w) == 1]),
    penalties.SignedEntropy: lambda r, w: _split_entropy(r, w),
    penalties.NoPenalty: lambda r, w: (0.0, []),
    penalties.NonNegativeL1: lambda r, w: (r.lam * cp.sum(w), [w >= 0]),
    penalties.NonNegativeElasticNet: lambda r, w: (r.l1 * cp.sum(w) + r.l2 / 2 * cp.sum_squares(w), [w >= 0]),
}


def _split_entropy(r, w):
    """The relative entropy of w = a - b to equal parts, with sum a + b = radius; in units of the radius."""
    d = w.shape[0]
    parts = cp.Variable(2 * d, nonneg=True)
    value = r.lam * r.radius * (np.log(2 * d) - cp.sum(cp.entr(parts)))
    return value, [w == r.radius * (parts[:d] - parts[d:]), cp.sum(parts) == 1]


def _groups(r, w):
    label, weight = np.asarray(r.groups), np.asarray(r.weights)
    return r.lam * sum(weight[k] * cp.norm2(w[np.flatnonzero(label == g)]) for k, g in enumerate(np.unique(label)))


def optimum(problem, accuracy=1e-9):
    """Weights and intercept of the optimum by Clarabel; weights exactly in the penalty's domain."""
    n, d = problem.shape
    X = np.column_stack([problem.design.matrix.toarray() if problem.design.is_sparse else problem.design.matrix])
    if problem.design.constant:
        X = np.column_stack([X, np.full(n, problem.design.constant)])
    w, b = cp.Variable(d), cp.Variable() if problem.intercept else 0.0
    z = np.asarray(X, dtype=np.float64) @ w + b
    share = problem.weights / problem.total_weight
    value, constraints = PENALTY[type(problem.penalty)](problem.penalty, w)
    objective = share @ LOSS[type(problem.loss)](problem.loss, z, problem.y) + value
    options = {"tol_gap_abs": accuracy, "tol_gap_rel": accuracy, "tol_feas": accuracy}
    statement = cp.Problem(cp.Minimize(objective), constraints)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "may be inaccurate": the status below decides
        statement.solve(solver="CLARABEL", **options)
    assert statement.status == "optimal", statement.status
    assert np.all(np.isfinite(w.value)), "no finite optimum"
    return domain_point(problem.penalty, w.value), float(b.value) if problem.intercept else 0.0


def reliable_optimum(problem):
    """The optimum as accurately as the oracle can: any point is an upper bound on P*, so a looser one is no less
    valid.
    """
    for accuracy in (1e-9, 1e-8, 1e-7):
        try:
            return optimum(problem, accuracy)
        except (AssertionError, cp.SolverError):
            continue
    return optimum(problem, 1e-6)


def multiclass_optimum(problem):
    """Weights and intercepts of a `MulticlassProblem`, a row and an entry for each class."""
    (n, d), k, X = problem.shape, problem.n_classes, problem.design.matrix
    X = np.asarray(X.toarray() if problem.design.is_sparse else X, dtype=np.float64)
    B, b = cp.Variable((k, d)), cp.Variable((1, k))
    Z = X @ B.T + (np.ones((n, 1)) @ b if problem.intercept else 0.0)
    own = np.eye(k)[problem.y]
    if isinstance(problem.loss, losses.Multinomial):
        value = cp.log_sum_exp(Z, axis=1) - cp.sum(cp.multiply(Z, own), axis=1)
    else:
        value = cp.max(Z + 1.0 - own, axis=1) - cp.sum(cp.multiply(Z, own), axis=1)
    size, _ = PENALTY[type(problem.penalty)](problem.penalty, cp.vec(B, order="C"))
    statement = cp.Problem(cp.Minimize(problem.weights / problem.total_weight @ value + size))
    for accuracy in (1e-10, 1e-8, 1e-6):
        options = {"tol_gap_abs": accuracy, "tol_gap_rel": accuracy, "tol_feas": accuracy}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "may be inaccurate": any point is an upper bound on the optimum
            try:
                statement.solve(solver="CLARABEL", **options)
            except cp.SolverError:
                continue
        if B.value is not None and np.all(np.isfinite(B.value)):
            break
    return B.value, b.value[0] if problem.intercept else np.zeros(k)


def domain_point(penalty, w):
    """w moved into the domain of a penalty."""
    if isinstance(penalty, penalties.Entropy):
        w = np.abs(w)
        return w / w.sum()
    if isinstance(penalty, penalties.NonNegativeL1 | penalties.NonNegativeElasticNet):
        return np.maximum(w, 0.0)
    radius = getattr(penalty, "radius", None)
    return w if radius is None else w * min(1.0, radius / p_norm(w, penalty.norm))
