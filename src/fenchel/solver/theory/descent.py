"""Sufficient steps of coordinate descent (Duenner, Forte, Takac and Jaggi 2016, Theorems 8 and 9, Corollaries 10, 11).

Algorithm 1 of the paper, one random coordinate per step, minimises (A): f(A x) + sum_j g_j(x_j) over N coordinates,
with f (1/beta)-smooth and columns |A_j| <= R. Expectations are over coordinates drawn uniformly with replacement. A
step may minimise (A) exactly, or the upper bound by smoothness: the proofs use the bound.

Here f is the weighted mean loss: for an L-smooth loss it is L-smooth in the norm |z|^2 = (1/W) sum_i s_i z_i^2, so
beta = 1/L and R^2 = max_j (1/W) sum_i s_i x_ij^2. The paper mixes sums and means (Table 1 has a mean for the logistic
loss, B = m log(2) / lam is that of a sum, and the logistic loss is 1/4-smooth, not 1-smooth), and Corollary 10 prints R
where Theorem 9 has R^2.

    solve(problem, solver="approx", over="weights", accelerate=False)     # Algorithm 1 on the weights
    solve(problem, solver="sdca", sampling="uniform", accelerate=False)   # and on the multipliers
"""

from __future__ import annotations

import numpy as np

from fenchel.problem import Problem
from fenchel.problem.checks import require_one_of
from fenchel.problem.penalties import L1, ElasticNet
from fenchel.solver.theory.bounds import GapBound, LipschitzBound, SmoothBound, require_positive


def descent_smooth(n: int, radius: float, mu: float, beta: float, initial: float) -> SmoothBound:
    """Theorem 8: every g_j is mu-strongly convex; the last iterate.

    K log(K initial / gap) steps with K = n + n R^2 / (mu beta).

    Parameters
    ----------
    n : int
        The number of coordinates, N above.
    radius : float
        R, the largest |A_j|.
    mu, beta : float
        Every g_j is mu-strongly convex; f is (1/beta)-smooth.
    initial : float
        A bound on the suboptimality of the start.
    """
    require_positive(n=n, radius=radius, mu=mu, beta=beta, initial=initial)
    return SmoothBound(n, n + n * radius**2 / (mu * beta), initial)


def descent_lipschitz(
    n: int, radius: float, lipschitz: float, beta: float, initial: float, one_sided: bool = False
) -> LipschitzBound:
    """Theorem 9: every g_j* is L-Lipschitz, so that |x_j| <= L; the average of the last iterates.

    At most max(0, n log(initial beta / (2 L^2 R^2 n))) + n + 20 n^2 L^2 R^2 / (beta gap) steps.

    Parameters
    ----------
    lipschitz : float
        L, a bound on the coordinates.
    one_sided : bool, default False
        Whether each coordinate keeps its sign: then |u_j - x_j| <= L, not 2 L, and 5 stands for 20.
    n, radius, beta, initial
        As for `descent_smooth`.
    """
    require_positive(n=n, radius=radius, lipschitz=lipschitz, beta=beta, initial=initial)
    return LipschitzBound(n, beta, (1.0 if one_sided else 4.0) * (n * lipschitz * radius) ** 2, initial)


def lasso(problem: Problem) -> LipschitzBound:
    """Corollary 10: descent on the weights of an L1 problem, from zero.

    Theorem 9 after Lipschitzing every lam |w_j| with B = f(0) / lam, a bound on all iterates: P never increases. The
    gap is that of the Lipschitzed problem, at least that of the certificate, which uses a ball of the 1-norm.

    Parameters
    ----------
    problem : Problem
        With a smooth nonnegative loss, L1, and no intercept.
    """
    _require(problem, L1)
    zero = _at_zero(problem)
    return descent_lipschitz(
        problem.shape[1], _widest_column(problem), zero / problem.penalty.lam, 1.0 / problem.loss.smoothness, zero
    )


def elastic_net(problem: Problem, over: str = "weights") -> GapBound:
    """Corollary 11: descent on the weights of an elastic net, or on its multipliers, from zero.

    Theorem 8 with mu = lam (1 - l1_ratio) and, for an L-smooth loss,

        over weights     K = d + d L max_j (1/W) sum_i s_i x_ij^2 / mu,
        over samples     K = n + L max_i |x_i|^2 / mu.

    For entries of equal size the second terms agree, d L x^2 / mu, and the first ones decide: fewer steps over weights
    if there are more samples than weights, and vice versa. (The paper's d are samples.) But a step on a weight costs a
    column, and one on a sample a row: in epochs the order is reversed.

    For a loss with kinks that is L-Lipschitz, such as the hinge, over samples: Theorem 9 with A_i = x_i / n and
    f = R*, which is (1/mu)-smooth (the third row of Table 1).

    Parameters
    ----------
    problem : Problem
        With a nonnegative loss, ElasticNet, and no intercept; the loss smooth, or Lipschitz for "samples"; with equal
        sample weights for "samples".
    over : {"weights", "samples"}, default "weights"
    """
    require_one_of(over, ("weights", "samples"), "over")
    lipschitz = over == "samples" and isinstance(problem, Problem) and np.isfinite(problem.loss.lipschitz)
    _require(problem, ElasticNet, smooth=not lipschitz)
    n, d = problem.shape
    mu, smoothness, zero = problem.penalty.strong_convexity, problem.loss.smoothness, _at_zero(problem)
    if over == "weights":
        return descent_smooth(d, _widest_column(problem), mu, 1.0 / smoothness, zero)
    if np.ptp(problem.weights) > 0:
        raise ValueError("the corollary needs samples of equal weight")
    # A_i = x_i / n, g_i = phi*(-.) / n, f = R*
    radius = float(problem.X.row_norms().max()) / n
    if np.isfinite(smoothness):
        return descent_smooth(n, radius, 1.0 / (smoothness * n), mu, zero)
    return descent_lipschitz(n, radius, problem.loss.lipschitz, mu, zero, one_sided(problem))


def one_sided(problem: Problem) -> bool:
    """Whether the multipliers of a sample keep one sign: for margin losses, such as the hinge."""
    low, high = problem.loss.domain(problem.y)
    return bool(np.all((low >= 0) | (high <= 0)))


def _require(problem: Problem, penalty: type, smooth: bool = True) -> None:
    if not isinstance(problem, Problem):
        raise TypeError(f"the corollaries need a fenchel.Problem, got {problem!r}")
    if not isinstance(problem.penalty, penalty) or problem.intercept:
        raise TypeError(f"the corollary needs an {penalty.__name__} penalty and no intercept; got {problem!r}")
    if smooth and not np.isfinite(problem.loss.smoothness):
        raise TypeError(f"the corollaries need a smooth loss, which {problem.loss!r} is not")


def _at_zero(problem: Problem) -> float:
    """f(0), a bound on the suboptimality of w = 0 and of alpha = 0: losses are nonnegative."""
    return problem.loss_at_zero


def _widest_column(problem: Problem) -> float:
    """R, the largest root mean square of a column."""
    widest = float(problem.X.column_norms(2.0, problem.weights).max()) / float(np.sqrt(problem.total_weight))
    if widest == 0.0:
        raise ValueError("every column of X is zero")
    return widest
