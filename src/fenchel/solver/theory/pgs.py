"""The Primal Gradient Solver (Zhu et al. 2009): regret (Lemma 1), optimisation error (Theorem 1), and steps for a test
loss that fall as the samples grow in number (Theorem 2).

mu = lam (p - 1) is the strong convexity of lam/2 |w|_p^2 in the p-norm, the paper's sigma; `SignedEntropy` has
lam / radius, in the 1-norm. The paper writes constants
as C and O(1); here they are those of its proofs.
"""

from __future__ import annotations

from math import ceil, inf, sqrt

import numpy as np
from numpy.typing import ArrayLike

from fenchel.data.typing import Vector
from fenchel.solver.theory.bounds import require_positive


def pgs_regret(gradients: ArrayLike, mu: float) -> Vector:
    """Lemma 1: sum_t c_t(w_{t-1}) - min_w sum_t c_t(w) <= (1/2) sum_t |g_t|_q^2 / (t mu), after each step t.

    Parameters
    ----------
    gradients : array
        |g_t|_q of each step, or upper bounds on them.
    """
    require_positive(mu=mu)
    squares = np.square(np.asarray(gradients, dtype=np.float64))
    return np.cumsum(squares / np.arange(1.0, len(squares) + 1.0)) / (2.0 * mu)


def pgs_error(lipschitz: float, mu: float, iterations: ArrayLike, delta: float = 1.0) -> Vector:
    """Theorem 1, Eq. (11): P(w_i) - P* <= L^2 (1 + log(T + 1)) / (2 mu T delta) with probability 1 - delta.

    i is drawn from 1 to T, as in Figure 1; Lemma 1 is about w_0 to w_T-1, for which log T is enough, so here it is used
    for T + 1 steps. L bounds |g_t|_q: the Lipschitz constant of the loss times max_i |x_i|_q. delta = 1 bounds the
    expectation.
    """
    _check(2.0, delta, lipschitz=lipschitz, mu=mu)
    T = np.asarray(iterations, dtype=np.float64)
    with np.errstate(divide="ignore"):
        return np.where(T >= 1.0, lipschitz**2 * (1.0 + np.log(np.maximum(T, 1.0) + 1.0)) / (2.0 * mu * delta), inf) / T


def pgs_iterations(lipschitz: float, mu: float, error: float, delta: float = 1.0) -> int:
    """The smallest T for which `pgs_error` is at most `error`; it falls in T from T = 1 on."""
    require_positive(error=error)
    low, high = 1, 1
    while float(pgs_error(lipschitz, mu, high, delta)) > error:
        low, high = high, 2 * high
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if float(pgs_error(lipschitz, mu, middle, delta)) <= error else (middle + 1, high)
    return high


def pgs_steps(epsilon: float, norm: float, p: float, samples: ArrayLike, delta: float = 0.1, C: float = 1.0) -> Vector:
    """Theorem 2, Eq. (12): steps for a test loss within epsilon of that of any w0 with |w0|_p = norm.

    T = (1 / delta) / (epsilon^2 (p - 1) / (2 norm^2) - C / m), m samples; infinite where they are too few.
    It is the least of Eq. (20), (1/(T delta) + C/m) / sigma + sigma norm^2 / (2 (p - 1)), over sigma, at epsilon: the
    paper prints 2 epsilon^2 where this has epsilon^2 / 2. Logarithms and the Lipschitz constant are left out, as there.
    C (Sridharan, Srebro and Shalev-Shwartz 2008) depends on the loss and the data.
    """
    _check(p, delta, epsilon=epsilon, norm=norm, C=C)
    left = epsilon**2 * (p - 1.0) / (2.0 * norm**2) - C / np.asarray(samples, dtype=np.float64)
    with np.errstate(divide="ignore"):
        return np.where(left > 0.0, 1.0 / (delta * np.maximum(left, 1e-300)), inf)


def pgs_lam(norm: float, p: float, samples: float, steps: float, delta: float = 0.1, C: float = 1.0) -> float:
    """The lam of the proof of Theorem 2: lam (p - 1) = sqrt((2 (p - 1) / norm^2) (1 / (T delta) + C / m))."""
    _check(p, delta, norm=norm, samples=samples, steps=steps, C=C)
    return sqrt(2.0 * (p - 1.0) / norm**2 * (1.0 / (steps * delta) + C / samples)) / (p - 1.0)


def least_samples(epsilon: float, norm: float, p: float, C: float = 1.0) -> int:
    """The number of samples below which no number of steps is enough by Theorem 2: 2 C norm^2 / (epsilon^2 (p - 1))."""
    _check(p, 1.0, epsilon=epsilon, norm=norm, C=C)
    return ceil(2.0 * C * norm**2 / (epsilon**2 * (p - 1.0)))


def _check(p: float, delta: float, **constants: float) -> None:
    require_positive(delta=delta, **constants)
    if not 1.0 < p <= 2.0:
        raise ValueError(f"p must lie in (1, 2], got {p!r}")
    if delta > 1.0:
        raise ValueError(f"delta is a probability, at most 1; got {delta!r}")
