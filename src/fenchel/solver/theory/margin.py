"""Margins: rates of momentum and of adaptive sampling on the dual simplex (Ji, Srebro and Telgarsky 2021).

The paper assumes |x_i| <= 1. Here rows have norms up to `radius`: the margin g of the data is radius times that of
x_i / radius. n is the number of rows, for several classes the number of samples times (k - 1).

    solve(problem, solver="margin", step_size=1.0)                                     # Algorithm 1
    solve(problem, solver="margin_sampling", steps="proven", horizon=T)                # Algorithm 2, Theorem 4.1
    solve(problem, solver="margin", loss="logistic", step_size=1.0 / n, shift=0.0)     # section 5.1

`fenchel.steps.margin.state` proves more than Theorem 3.1 prints: with l_t = 2 / (t + 2), a step size s and a loss whose
psi is (1/s)-smooth in the max-norm,

    margin(w_t) >= g - psi(0) / |w_t|,     |w_t| >= g s t (t + 3) / 4,     |Z'mu_t|^2 - g^2 <= 8 psi(0) / (s (t + 1)^2),

without the factor 1 + 2 log(t + 1). psi(0) is log n for the exponential loss with s = 1. Theorem 5.1 takes Theorem 3.1
to several classes and loses a factor 2 on the way: g_m = sqrt(2) g enters twice. What it prints is nevertheless true,
because the sharper bound, with the factor, is below it.

Lemma 3.4 prints Z'mu_t = 2 q_t / t, and means 2 g_t / t.
"""

from __future__ import annotations

from math import ceil, exp, expm1, log, log1p, sqrt

import numpy as np
from numpy.typing import ArrayLike

from fenchel.data.typing import Vector
from fenchel.problem.checks import require_count
from fenchel.solver.theory.bounds import require_positive


def margin_momentum(iterations: ArrayLike, n: int, margin: float, radius: float = 1.0, sharp: bool = False) -> Vector:
    """Theorem 3.1, part 1: the margin of w_t is at least g - 4 (1 + log n) (1 + 2 log(t + 1)) / (g (t + 1)^2).

    Parameters
    ----------
    iterations : int or array
        t >= 1.
    n : int
        The number of rows.
    margin : float
        g, the largest margin.
    radius : float, default 1
        max_i |x_i|.
    sharp : bool, default False
        The bound proven here, g - 4 log(n) / (g t (t + 3)).
    """
    t, g = _steps(iterations), _unit(n, margin, radius)
    lost = (
        4.0 * log(n) / (t * (t + 3.0)) if sharp else 4.0 * (1.0 + log(n)) * (1.0 + 2.0 * np.log1p(t)) / (t + 1.0) ** 2
    )
    return np.asarray(radius * (g - lost / g))


def margin_half(iterations: ArrayLike, n: int, margin: float, radius: float = 1.0) -> Vector:
    """Proposition 3.7: the margin of w_t is at least g / 2 - 4 log(n) / (g (t + 1)^2); parameters of `margin_momentum`.

    After t + 1 = 4 sqrt(log n) / g steps it is g / 4.
    """
    t, g = _steps(iterations), _unit(n, margin, radius)
    return np.asarray(radius * (g / 2.0 - 4.0 * log(n) / (g * (t + 1.0) ** 2)))


def margin_dual(iterations: ArrayLike, n: int, radius: float = 1.0) -> Vector:
    """Lemma 3.2: |Z'mu_t|^2 / 2 exceeds its least value g^2 / 2 by no more than 4 log(n) / (t + 1)^2."""
    require_count(n, "n", "rows")
    require_positive(radius=radius)
    return np.asarray(4.0 * log(n) * radius**2 / (_steps(iterations) + 1.0) ** 2)


def margin_between(iterations: ArrayLike, n: int, length: ArrayLike, radius: float = 1.0) -> tuple[Vector, Vector]:
    """Theorem 3.1, part 2: the largest margin is between these, whether or not the data can be separated.

    Its square is between |Z'mu_t|^2 - 8 log(n) / (t + 1)^2 and |Z'mu_t|^2. With |Z'mu_t| = 2 |g_t| / t.

    Parameters
    ----------
    iterations, n, radius
        As in `margin_momentum`.
    length : float or array
        |Z'mu_t|, in the units of the data.
    """
    upper = np.asarray(length, dtype=np.float64)
    square = (upper / radius) ** 2 - 2.0 * margin_dual(iterations, n)
    return np.sqrt(np.maximum(square, 0.0)) * radius, upper


def margin_logistic(
    iterations: ArrayLike, n: int, margin: float, radius: float = 1.0, shift: float | None = 0.0
) -> Vector:
    """Appendix C, the logistic loss: the margin of w_t is at least g - 4 psi(0) / (g s t (t + 3)).

    With `shift` 0 it is the paper's loss, log(1 + exp(z)): psi(0) = log(2^n - 1) and the step size s = 1/n, so that
    n^2 log 2 stands where log n does for the exponential loss. With None it is log(1 + exp(z - log n)):
    psi(0) = log n + log((1 + 1/n)^n - 1) <= log n + 0.55 and s = 1 - 1/e, as long as psi stays below psi(0).

    Parameters
    ----------
    iterations, n, margin, radius
        As in `margin_momentum`.
    shift : 0 or None, default 0
        As in `solve(solver="margin", loss="logistic")`.
    """
    if shift not in (None, 0.0):
        raise ValueError(f"margin_logistic: shift must be 0 or None, for log n; got {shift!r}")
    t, g = _steps(iterations), _unit(n, margin, radius)
    if shift is None:
        total, start = n * log1p(1.0 / n), log(n)
        step = 1.0 - exp(-1.0)
    else:
        total, start, step = n * log(2.0), 0.0, 1.0 / n
    psi = start + (log(expm1(total)) if total < 30.0 else total + log1p(-exp(-total)))
    return np.asarray(radius * (g - 4.0 * psi / (g * step * t * (t + 3.0))))


def margin_sampling_steps(n: int, margin: float, shortfall: float, failure: float, radius: float = 1.0) -> int:
    """Theorem 4.1: steps of Algorithm 2 after which the margin is at least g - shortfall, except with `failure`.

    t = max(ceil((32 log n + 64 log(2 / failure)) / (g e)^2), ceil(32 / (failure e^2))), with e = shortfall, for rows of
    norm at most 1 and the step size sqrt(log(n) / t). Proof: psi is 1-smooth, so that -psi(Zw_t) >= -log n + sum_j
    (s Z'q_j.z_j - s^2 / 2), and by Azuma's and Chebyshev's inequalities the sums over z_j are those over Z'q_j up to
    sqrt(2 t log(2 / failure)) and |sum (z_j - Z'q_j)| <= sqrt(2 t / failure), each except with failure / 2.

    Parameters
    ----------
    n, margin, radius
        As in `margin_momentum`.
    shortfall : float
        e > 0, in the units of the data.
    failure : float
        The probability that is allowed, below 1.
    """
    g = _unit(n, margin, radius)
    require_positive(shortfall=shortfall)
    _require_probability(failure, "margin_sampling_steps")
    e = shortfall / radius
    first = (32.0 * log(n) + 64.0 * log(2.0 / failure)) / (g * e) ** 2
    return max(ceil(first), ceil(32.0 / (failure * e * e)))


def margin_sampling(iterations: ArrayLike, n: int, margin: float, failure: float = 0.1, radius: float = 1.0) -> Vector:
    """Theorem 4.1 the other way round: after t steps of size sqrt(log(n) / t) the margin is at least g - e, except with
    `failure`, for the smallest e of which t is `margin_sampling_steps`. Each t is a run of its own.

        e = max(sqrt((32 log n + 64 log(2 / failure)) / t) / g, sqrt(32 / (failure t)))

    Parameters
    ----------
    failure : float, default 0.1
        The probability that is allowed, below 1.
    iterations, n, margin, radius
        As in `margin_momentum`.
    """
    t, g = _steps(iterations), _unit(n, margin, radius)
    _require_probability(failure, "margin_sampling")
    first = np.sqrt((32.0 * log(n) + 64.0 * log(2.0 / failure)) / t) / g
    return np.asarray(radius * (g - np.maximum(first, np.sqrt(32.0 / (failure * t)))))


def margin_multiclass(
    iterations: ArrayLike, samples: int, classes: int, margin: float, radius: float = 1.0, sharp: bool = False
) -> Vector:
    """Theorem 5.1: for k classes the margin of U_t is at least g - 4 (1 + log n) (1 + 2 log(t + 1)) / (g (t + 1)^2).

    n = samples (k - 1); the margin is min_i min_j (u_c - u_j).x_i / |U|_F.

    Parameters
    ----------
    samples, classes : int
        The number of samples, and k.
    margin : float
        g, the largest multiclass margin.
    sharp : bool, default False
        The bound proven here, g - 8 log(n) / (g t (t + 3)).
    iterations, radius
        As in `margin_momentum`.
    """
    require_count(samples, "samples", "samples")
    require_count(classes, "classes", "classes")
    if classes < 2:
        raise ValueError(f"margin_multiclass: there must be two classes or more; got {classes}")
    t, n, g = _steps(iterations), samples * (classes - 1), margin / sqrt(2.0)
    if sharp:
        return sqrt(2.0) * margin_momentum(t, n, g, radius, sharp=True)
    require_positive(margin=margin, radius=radius)
    lost = 4.0 * (1.0 + log(n)) * (1.0 + 2.0 * np.log1p(t)) / (t + 1.0) ** 2
    return np.asarray(margin - lost * radius**2 / margin)


def _steps(iterations: ArrayLike) -> Vector:
    """t, at least 1."""
    t = np.asarray(iterations, dtype=np.float64)
    if np.any(t < 1.0):
        raise ValueError("iterations must be at least 1")
    return t


def _require_probability(failure: float, name: str) -> None:
    require_positive(failure=failure)
    if not failure < 1.0:
        raise ValueError(f"{name}: failure must be below 1, got {failure!r}")


def _unit(n: int, margin: float, radius: float) -> float:
    """The margin of rows divided by the radius."""
    require_count(n, "n", "rows")
    require_positive(margin=margin, radius=radius)
    if margin > radius * (1.0 + 1e-9):
        raise ValueError(f"a margin is at most max_i |x_i|: got margin {margin!r} and radius {radius!r}")
    return margin / radius
