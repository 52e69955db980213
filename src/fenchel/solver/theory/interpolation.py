"""Interpolation: rates of dual coordinate ascent and mirror descent, and mistakes (Raj and Bach 2020).

With beta_i = s_i alpha_i / W, which is the paper's -alpha_i / n, appendix B.1's scaling of the dual is

    G(beta) = -sum_i sigma_i(-beta_i) - R*(sum_i beta_i x_i),

whose smooth part has the coordinate-wise constants L_i = |x_i|_{2->*}^2 / mu, without any n. A step draws one of the n
samples of positive weight uniformly; "step" is one sample, n steps are a pass. Everything is in terms of

    initial    G(beta*) - G(0),           distance    |beta*|_L^2 = sum_i L_i |beta_i*|^2.

(With the step size 1 / max_i L_i for all samples, max_i L_i stands for every L_i.)

The paper's text mixes this scaling with that of its Eq. (4), where coordinate i has the constant L_i / n^2: Eq. (8) has
the factor n^2 in |alpha*|^2 and lacks it before G(alpha*) - G(0). Eq. (13) prints max_i |x_i|_q for max_i L_i and
sqrt(t) for t, Lemma 3 and Eq. (24) the same R for R^2 / (p - 1). The functions follow the proofs; each docstring gives
its own.

    solve(problem, solver="dykstra", sampling="uniform")                      # Algorithm 1
    solve(problem, solver="dykstra", sampling="uniform", accelerate=True)     # Algorithm 2
    solve(problem, solver="mirror", output="average")                         # Eq. (10)
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, sqrt

import numpy as np
from numpy.typing import ArrayLike

from fenchel.data.typing import Vector
from fenchel.problem import Interpolation
from fenchel.problem.checks import require_one_of, shown
from fenchel.solver.theory.bounds import require_positive
from fenchel.steps.interpolation.passes import smoothness


@dataclass(frozen=True)
class AscentBound:
    """Eq. (5), plain dual coordinate ascent: the dual's expected suboptimality after t steps,

        E[G(beta*) - G(beta_t)] <= n / (n + t) (initial + distance / 2).

    Proof (Lu and Xiao 2015). With F = -G = f + Psi, Psi the support functions, and d the proximal step of all
    coordinates at beta, a step of a random coordinate has E[F(beta')] <= F(beta) + (q - F(beta)) / n with q = f(beta)
    + grad f.d + |d|_L^2 / 2 + Psi(beta + d), and q + |beta + d - c|_L^2 / 2 <= F(c) + |beta - c|_L^2 / 2 for every c.
    So F(beta_t) + |beta_t - c|_L^2 / 2 falls by (F(beta_t) - F(c)) / n or more in expectation; add up, and use that F
    never increases.

    The paper's max{|alpha*|, R(0)}^2, R(0) the radius of a level set, is not needed: it is infinite if the level set is
    unbounded. Nor must c be optimal: for any multipliers c the bound is on G(c) - G(beta_t).
    """

    n: int
    initial: float
    distance: float

    def dual(self, iterations: ArrayLike) -> Vector:
        """A bound on the expected suboptimality of D."""
        t = np.asarray(iterations, dtype=np.float64)
        return self.n / (self.n + t) * (self.initial + self.distance / 2.0)

    def iterations(self, gap: float) -> int:
        """Steps after which the expected suboptimality of D is at most `gap`."""
        require_positive(gap=gap)
        return max(0, ceil(self.n * ((self.initial + self.distance / 2.0) / gap - 1.0)))


@dataclass(frozen=True)
class AcceleratedAscentBound:
    """Eq. (8), accelerated dual coordinate ascent: the dual's expected suboptimality after t >= 1 steps,

        E[G(beta*) - G(beta_t)] <= (2 n / (2 n + t - 1))^2 ((1 - 1/n) initial + distance / 2).

    It is Theorem 3 of Fercoq and Richtarik 2015 (APPROX) with one coordinate per step, for its sequence x_t, the
    paper's v_t. As t grows it is 4 n^2 / t^2 (initial + distance / 2); Eq. (8) prints it without the n^2 of `initial`.
    """

    n: int
    initial: float
    distance: float

    @property
    def _start(self) -> float:
        return (1.0 - 1.0 / self.n) * self.initial + self.distance / 2.0

    def dual(self, iterations: ArrayLike) -> Vector:
        """A bound on the expected suboptimality of D; that of the start for t = 0."""
        t = np.asarray(iterations, dtype=np.float64)
        return np.where(t < 1.0, self.initial, (2.0 * self.n / (2.0 * self.n + t - 1.0)) ** 2 * self._start)

    def iterations(self, gap: float) -> int:
        """Steps after which the expected suboptimality of D is at most `gap`."""
        require_positive(gap=gap)
        return max(1, ceil(2.0 * self.n * (sqrt(self._start / gap) - 1.0) + 1.0))


def dykstra(
    problem: Interpolation, alpha: Vector, accelerate: bool = False, steps: str = "each"
) -> AscentBound | AcceleratedAscentBound:
    """Eq. (5) or (8) for a problem, from zero and with uniform sampling.

    Parameters
    ----------
    problem : Interpolation
        Without an intercept.
    alpha : array of multipliers
        Optimal ones, such as those of `solve(problem).alpha`. With others the bounds are on D(alpha) - D(alpha_t).
    accelerate, steps
        As in `solve(solver="dykstra")`.
    """
    _require_interpolation(problem)
    require_one_of(steps, ("each", "largest"), "steps")
    L = _smoothness(problem)
    if steps == "largest":
        L = np.full_like(L, L.max())
    beta = problem.fractions * np.reshape(alpha, (-1, problem.outputs))
    distance = float(np.sum(L * np.sum(beta**2, axis=1)[problem.counts]))
    initial = problem.dual(alpha) - problem.dual(np.zeros(problem.shapes[2]))
    kind = AcceleratedAscentBound if accelerate else AscentBound
    return kind(int(problem.counts.sum()), initial, distance)


def weights_distance(gap: ArrayLike, strong_convexity: float) -> Vector:
    """Corollary 1: |w(alpha) - w*| <= sqrt(2 gap / mu), in the norm for which R is mu-strongly convex.

    By Proposition 1 D_R(w*, w(alpha)) <= gap = G(alpha*) - G(alpha), and mu/2 |w - w*|^2 <= D_R. If `gap` bounds an
    expectation, so does the result, by Jensen's inequality.

    Parameters
    ----------
    gap : float or array
        The suboptimality of D, or a bound on it.
    strong_convexity : float
        mu; lam (p - 1) for LpSquared(lam, p), with the p-norm.
    """
    require_positive(strong_convexity=strong_convexity)
    return np.sqrt(2.0 * np.asarray(gap, dtype=np.float64) / strong_convexity)


def sdca_distance(
    iterations: ArrayLike,
    n: int,
    lam: float,
    gamma: float,
    radius: float = 1.0,
    initial: float = 1.0,
    accelerate: bool = False,
) -> Vector:
    """Corollaries C.1 and C.2: lam/2 E|w(alpha_t) - w*|^2 <= E[D(alpha*) - D(alpha_t)] after t steps, and its bound,

        (1 - 1 / (n + q))^t initial,   accelerated   2 (1 - 1 / (n + sqrt(n q)))^t initial,   q = R^2 / (lam gamma),

    of dual coordinate ascent on a mean of n losses plus lam/2 |w|^2; w is the last model, not a mean. The first
    inequality is Proposition 1 with R = lam/2 |w|^2. The rates are Theorem 5 of Shalev-Shwartz and Zhang 2013, and
    Theorem 3 of Lin, Lu and Xiao 2014, whose |alpha* - alpha_0|^2 gamma / (2 n) is at most `initial`, since D is
    (gamma/n)-strongly concave.

    The corollaries print 1 - 1/q and 1 - 1/sqrt(q). They take mu = gamma/n and L_i = |x_i|^2 / (lam n^2) for constants
    of the same function; but L_i leaves out the conjugates of the losses, without which D is not strongly concave. Both
    fail for small q, where they are below 1 - 1/n, or not even positive: a step changes one of n multipliers.

    Parameters
    ----------
    iterations : int or array
        t, the samples drawn so far.
    n, lam, gamma, radius, initial
        As for `sdca_smooth`.
    accelerate : bool, default False
        Corollary C.2.
    """
    require_positive(n=n, lam=lam, gamma=gamma, radius=radius, initial=initial)
    t, q = np.asarray(iterations, dtype=np.float64), radius**2 / (lam * gamma)
    if accelerate:
        return np.asarray(2.0 * initial * (1.0 - 1.0 / (n + sqrt(n * q))) ** t)
    return np.asarray(initial * (1.0 - 1.0 / (n + q)) ** t)


def perceptron_steps(bound: AscentBound | AcceleratedAscentBound, largest: float, failure: float = 1.0) -> int:
    """Lemma 3: steps until no training sample is on the wrong side.

    For constraints sign_i z_i >= 1, Corollary 1 with |x_i|_* <= sqrt(mu max_i L_i) gives

        sign_i z_i >= 1 - |x_i|_* |w - w*| >= 1 - sqrt(2 gap max_i L_i),

    so that there is no mistake once gap < 1 / (2 max_i L_i). With Eq. (8), for t > 2 n sqrt(2 max_i L_i C) - 2 n + 1
    and C = (1 - 1/n) initial + distance / 2, the expected shortfall of every margin is below 1: the paper's "no mistake
    on average". By Markov's inequality the probability of a mistake is below `failure` once the expected gap is below
    failure / (2 max_i L_i).

    Parameters
    ----------
    bound : AscentBound or AcceleratedAscentBound
        As from `dykstra`.
    largest : float
        max_i L_i: R^2 / (lam (p - 1)) for LpSquared(lam, p) and R = max_i |x_i|_q.
    failure : float, default 1
        The probability of a mistake that is allowed; 1 is the paper's statement.
    """
    require_positive(largest=largest, failure=failure)
    return bound.iterations(failure / (2.0 * largest)) + 1


def mirror_objective(iterations: ArrayLike, largest: float, divergence: float) -> Vector:
    """Theorem 1: E[F(mean of the first t iterates)] <= max_i L_i D_R(w*, w_0) / t.

    F(w) = (1/2n) sum_i dist(z_i, Y_i)^2, and the step size is gamma = 1 / max_i L_i. Proof: with f_i = dist(z_i,
    Y_i)^2 / 2, |f_i'|_*^2 <= 2 mu L_i f_i; and f_i'.(w - w*) >= 2 f_i, since z_i* is in Y_i. So the usual inequality
    of mirror descent, D_R(w*, w_t) <= D_R(w*, w_{t-1}) - gamma f_i'.(w_{t-1} - w*) + gamma^2 |f_i'|_*^2 / (2 mu), is
    D_R(w*, w_t) <= D_R(w*, w_{t-1}) - gamma f_i. (Appendix A.2 loses a factor 2 in each inequality, and has 2 / gamma
    in its last line; the theorem is right as stated.)

    Parameters
    ----------
    iterations : int or array
        t.
    largest : float
        max_i L_i.
    divergence : float
        D_R(w*, w_0). From zero it is R(w*) - R(w_0), the optimum of the problem for a norm.
    """
    require_positive(largest=largest, divergence=divergence)
    return largest * divergence / np.maximum(np.asarray(iterations, dtype=np.float64), 1.0)


def mirror_mistakes(iterations: ArrayLike, largest: float, divergence: float) -> Vector:
    """Corollary 2: the expected proportion of training mistakes of the mean iterate.

    It is at most min(1, 2 max_i L_i D_R(w*, w_0) / t).
    For sign_i z_i >= 1 a sample on the wrong side has a distance of 1 or more: the proportion is at most 2 F. For
    |w|_p^2 / 2 this is |w*|_p^2 R^2 / ((p - 1) t). (The paper takes its square root, which is larger wherever the bound
    says anything.) The parameters are those of `mirror_objective`.
    """
    return np.minimum(1.0, 2.0 * mirror_objective(iterations, largest, divergence))


def perceptron_corrections(largest: float, optimum: float) -> int:
    """The most corrections that a perceptron makes from zero, in any order of the samples: 2 max_i L_i R(w*).

    For the penalties lam/2 |w|_p^2 and sign_i z_i* >= 1 (Novikoff 1962 for p = 2; Grove, Littlestone and Schuurmans
    2001). Proof: each correction adds rate sign_i x_i to v, so that after M of them v.w* >= rate M; and
    R*(v) <= M rate^2 max_i L_i / 2, since sign_i x_i.w <= 0 at each. By Hoelder's inequality
    v.w* <= 2 sqrt(R*(v) R(w*)).

    Parameters
    ----------
    largest : float
        max_i L_i.
    optimum : float
        R(w*), for any w* with all margins at least 1.
    """
    require_positive(largest=largest, optimum=optimum)
    return int(2.0 * largest * optimum)


def largest_smoothness(problem: Interpolation) -> float:
    """max_i L_i of a problem, L_i = |x_i|_{2->*}^2 / mu."""
    _require_interpolation(problem)
    return float(_smoothness(problem).max())


def _smoothness(problem: Interpolation) -> Vector:
    """L_i of the samples of positive weight."""
    L = smoothness(problem, problem.penalty)[problem.counts]
    if not L.size:
        raise ValueError("every sample has weight zero")
    return L


def _require_interpolation(problem: Interpolation) -> None:
    if not isinstance(problem, Interpolation):
        raise TypeError(f"the theorems need a fenchel.Interpolation, got {shown(problem)}")
    if problem.intercept:
        raise TypeError(f"the theorems need a problem without an intercept; got {problem!r}")
