"""Sufficient steps of stochastic dual coordinate ascent (Shalev-Shwartz and Zhang 2013, Theorems 2, 5, 9 and 11).

Expectations are over samples drawn uniformly with replacement; a step is one sample, n steps are an epoch. The
objective is the unweighted mean of n losses plus lam/2 |w|^2, without an intercept.

The paper assumes |x_i| <= 1. For |x_i| <= R put x' = x / R, w' = R w and lam' = lam / R^2: scores, P, D and every step
are the same, so its bounds hold with lam / R^2 for lam. It also assumes D(alpha*) - D(0) <= 1, which follows from
0 <= phi <= phi(0) <= 1; `initial` is any other bound on that difference, such as the mean of phi(0).
"""

from __future__ import annotations

from math import log

import numpy as np

from fenchel.problem import Problem
from fenchel.solver.theory.bounds import GapBound, LipschitzBound, SmoothBound, require_positive
from fenchel.solver.theory.descent import one_sided as keeps_sign


def sdca_smooth(n: int, lam: float, gamma: float, radius: float = 1.0, initial: float = 1.0) -> SmoothBound:
    """Theorem 5, for a loss whose derivative has the Lipschitz constant 1 / gamma.

    Parameters
    ----------
    n : int
        Samples.
    lam : float
        Of the penalty lam/2 |w|^2.
    gamma : float
        Strong convexity of the conjugate: gamma for the smoothed hinge, 4 for the logistic loss.
    radius : float, default 1
        The largest |x_i|.
    initial : float, default 1
        A bound on D(alpha*) - D(0).
    """
    require_positive(n=n, lam=lam, gamma=gamma, radius=radius, initial=initial)
    return SmoothBound(n, n + radius**2 / (lam * gamma), initial)


def sdca_lipschitz(
    n: int, lam: float, lipschitz: float = 1.0, one_sided: bool = False, radius: float = 1.0, initial: float = 1.0
) -> LipschitzBound:
    """Theorem 2, for a Lipschitz loss; from zero.

    G = 4 L^2, since multipliers lie in [-L, L]; if they keep one sign, G = L^2 (Remark 4, for the hinge).

    Remark 4 prints max(0, n log(0.5 lam n / L^2)) + n + 5 L^2 / (lam gap) steps. With G = L^2 the proof of Theorem 2
    has t0 = n log(2 lam n / L^2), later by n log 4; but it also has -2 n in T0 = t0 - 2 n + 4 G / (lam gap), which the
    theorem leaves out and which pays for that. So the remark is right; `LipschitzBound` never takes more steps.

    Parameters
    ----------
    lipschitz : float, default 1
        L.
    one_sided : bool, default False
        Whether the multipliers of a sample keep one sign: for margin losses, such as the hinge.
    n, lam, radius, initial
        As for `sdca_smooth`.
    """
    G = _spread(n, lam, lipschitz, one_sided, radius)
    require_positive(initial=initial)
    return LipschitzBound(n, lam, G, initial)


def sdca_sgd(
    n: int, lam: float, lipschitz: float = 1.0, one_sided: bool = False, radius: float = 1.0
) -> LipschitzBound:
    """Theorem 11: the same after one epoch of Modified-SGD (init="sgd"), which is not counted.

    Theorem 9 (`sdca_first_epoch`) bounds the suboptimality of its start: t0 = n log(4 (L R)^2 log(e n) / G). The
    expectation is over the data as well. (Remark 13, with 5 for 20, is right as Remark 4 is.)

    The parameters are those of `sdca_lipschitz`.
    """
    G = _spread(n, lam, lipschitz, one_sided, radius)
    return LipschitzBound(n, lam, G, sdca_first_epoch(n, lam, lipschitz, radius))


def sdca_first_epoch(n: int, lam: float, lipschitz: float = 1.0, radius: float = 1.0) -> float:
    """Theorem 9: after an epoch of Modified-SGD (init="sgd") E[D* - D(alpha)] <= 2 (L R)^2 log(e n) / (lam n).

    For samples that are drawn independently from one distribution; the expectation is over them. The parameters are
    those of `sdca_lipschitz`.
    """
    return 2.0 * _spread(n, lam, lipschitz, True, radius) * (1.0 + log(n)) / (lam * n)


def sdca(problem: Problem, init: str = "zeros") -> GapBound:
    """The theorem for a problem: 5 for a smooth loss, 2 for a Lipschitz one, 11 for one started by SGD.

    Parameters
    ----------
    problem : Problem
        With an L2 penalty, no intercept, equal sample weights, and a nonnegative loss.
    init : {"zeros", "sgd"}, default "zeros"
        As in `solve(solver="sdca")`.
    """
    if not isinstance(problem, Problem):
        raise TypeError(f"the theorems need a fenchel.Problem, got {problem!r}")
    loss, n = problem.loss, problem.shape[0]
    if not problem.penalty.quadratic or problem.intercept:
        raise TypeError(f"the theorems need an L2 penalty and no intercept; got {problem!r}")
    if np.ptp(problem.weights) > 0:
        raise ValueError("the theorems need samples of equal weight")
    if init not in ("zeros", "sgd"):
        raise ValueError(f"init must be 'zeros' or 'sgd', got {init!r}")
    lam = problem.penalty.strong_convexity
    radius = float(problem.X.row_norms().max())
    if radius == 0.0:
        raise ValueError("every row of X is zero")
    sign, initial = keeps_sign(problem), problem.loss_at_zero
    if init == "sgd":
        return sdca_sgd(n, lam, _lipschitz(problem), sign, radius)
    if np.isfinite(loss.smoothness):
        return sdca_smooth(n, lam, 1.0 / loss.smoothness, radius, initial)
    return sdca_lipschitz(n, lam, _lipschitz(problem), sign, radius, initial)


def _lipschitz(problem: Problem) -> float:
    if not np.isfinite(problem.loss.lipschitz):
        raise TypeError(f"the theorems need a smooth or a Lipschitz loss, which {problem.loss!r} is not")
    return problem.loss.lipschitz


def _spread(n: int, lam: float, lipschitz: float, one_sided: bool, radius: float) -> float:
    require_positive(n=n, lam=lam, lipschitz=lipschitz, radius=radius)
    return (lipschitz * radius) ** 2 * (1.0 if one_sided else 4.0)
