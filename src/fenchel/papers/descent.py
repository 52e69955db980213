"""Runs of the Primal Gradient Solver as in its paper: the model at checkpoints within a pass.

A run draws samples uniformly with replacement and returns to us after given numbers of gradient steps. The steps are
those of `solver="pgs"` (`GradientModels.learn`); the clock runs in them only. The model is that of the solver, the mean
of the iterates with weights t + 1; the paper returns one of them at random.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import optimize

from fenchel.data.typing import Vector
from fenchel.papers.curves import reference
from fenchel.papers.datasets import Dataset
from fenchel.papers.panels import Colour
from fenchel.problem import Problem
from fenchel.problem.losses import Logistic, Loss, Squared
from fenchel.problem.penalties import L2, LpSquared
from fenchel.solver.theory import pgs_regret
from fenchel.steps import PGS, Start
from fenchel.steps.stochastic.models import SUMS
from fenchel.steps.stochastic.pgs import DescentState

#: What a run is judged by: higher is better.
Quality = Callable[[Vector], float]


@dataclass(frozen=True)
class Kind:
    """A regulariser and a loss: lam/2 |w|_p^2 and phi."""

    label: str
    loss: Loss
    p: float
    colour: Colour

    def problem(self, X: object, y: Vector, lam: float) -> Problem:
        """Without an intercept."""
        return Problem(X, y, self.loss, L2(lam) if self.p == 2.0 else LpSquared(lam, self.p))


#: The three of section V. The paper's loss of least squares is twice ours, which halves lam.
L2_LOGISTIC = Kind("ℓ2 logistic", Logistic(), 2.0, Colour.BLUE)
POWER_LOGISTIC = Kind("ℓ1.8 logistic", Logistic(), 1.8, Colour.GREEN)
L2_SQUARES = Kind("ℓ2 least squares", Squared(), 2.0, Colour.PURPLE)
KINDS = (L2_LOGISTIC, POWER_LOGISTIC, L2_SQUARES)


@dataclass(frozen=True)
class Run:
    """Gradient steps, seconds and quality at each checkpoint."""

    steps: Vector
    seconds: Vector
    quality: Vector

    @property
    def best(self) -> float:
        """The highest quality seen."""
        return float(self.quality.max())

    def crossing(self, target: float) -> tuple[float, float]:
        """Steps and seconds at the first checkpoint with at least this quality; infinite if there is none."""
        reached = np.flatnonzero(self.quality >= target)
        if not len(reached):
            return np.inf, np.inf
        return float(self.steps[reached[0]]), float(self.seconds[reached[0]])


def checkpoints(last: int, count: int, first: int = 1) -> list[int]:
    """At most `count` numbers of steps from `first` to `last`, in equal ratios."""
    return sorted({round(step) for step in np.geomspace(min(first, last), last, count).tolist()})


def accuracy(dataset: Dataset) -> Quality:
    """The fraction of test samples on the right side; a score of 0 is on the wrong one."""
    return lambda w: float(np.mean((dataset.X_test @ w) * dataset.y_test > 0.0))


def nearness(best: Vector) -> Quality:
    """Minus the distance of w / |w| from a vector of length 1; at w = 0 it is -1."""
    return lambda w: -float(np.linalg.norm(best - w / max(float(np.linalg.norm(w)), np.finfo(float).tiny)))


def descend(problem: Problem, quality: Quality, at: Sequence[int], seed: int = 0, enough: float = np.inf) -> Run:
    """Run from zero, with checkpoints after these numbers of gradient steps; no further than the quality `enough`.

    Batches are as in `solver="pgs"`: 1 for p = 2, and for p < 2 as many samples as have d entries together, which is
    the paper's k = n / d in its notation.
    """
    state = _begin(problem, seed, "average")
    rng, taken, seconds, rows = np.random.default_rng(seed), 0, 0.0, []
    for step in at:
        begun = time.perf_counter()
        _take(state, rng, step - taken)
        w = np.ascontiguousarray(state.models.average()[: problem.shape[1], 0])
        seconds, taken = seconds + time.perf_counter() - begun, step
        rows.append((float(step), seconds, quality(w)))
        if rows[-1][2] >= enough:
            break
    return Run(*np.array(rows).T)


def batch_of(problem: Problem) -> int:
    """The samples of a gradient step."""
    return _begin(problem, 0, "last").batch


def _begin(problem: Problem, seed: int, output: str) -> DescentState:
    n, d = problem.shape
    return PGS(output=output).begin(problem, Start(np.zeros(d), 0.0, np.zeros(n)), seed)


def _take(state: DescentState, rng: np.random.Generator, steps: int) -> tuple[Vector, np.ndarray]:
    """Take steps; returns the sums of their pass and the samples drawn."""
    problem, n = state.problem, state.problem.shape[0]
    order = rng.integers(n, size=steps * state.batch)
    rows, mean_weight = state.rows, problem.total_weight / n
    assert rows is not None
    sums, _ = state.models.learn(problem.loss, rows, problem.y, problem.weights, order, mean_weight, state.batch)
    return sums[:, 0], order


# The quasi-Newton method that the paper compares with -----------------------------------------------------------------


def quasi_newton(problem: Problem, quality: Quality, enough: float = np.inf, steps: int = 1000) -> tuple[Run, Vector]:
    """scipy's L-BFGS from zero, with a checkpoint after each iteration, which takes no time; and its last w."""
    problem = problem.replace(X=problem.X.using(1))
    w0, lost = np.zeros(problem.shape[1]), 0.0
    rows: list[tuple[float, float, float]] = []
    begun = time.perf_counter()

    def objective(w: Vector) -> tuple[float, Vector]:
        z = problem.scores(w)
        value = problem.mean(problem.loss.value(z, problem.y)) + problem.penalty.value(w)
        slope = problem.penalty.subgradients(w, 0.0)
        assert slope is not None
        return value, slope.point - problem.dual_vector(-problem.loss.derivative(z, problem.y))

    def look(w: Vector) -> None:
        nonlocal lost
        stopped = time.perf_counter()
        rows.append((len(rows) + 1.0, stopped - begun - lost, quality(w)))
        lost += time.perf_counter() - stopped
        if rows[-1][2] >= enough:
            raise StopIteration

    found = optimize.minimize(
        objective, w0, jac=True, method="L-BFGS-B", callback=look, options={"maxiter": steps, "ftol": 0.0, "gtol": 1e-9}
    )
    return Run(*np.array(rows or [(0.0, 0.0, quality(w0))]).T), np.asarray(found.x)


# What the theorems speak of -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Journal:
    """Every step t = 1, 2, ... of a run: w_{t-1}, from which it is taken, and its batch.

    Attributes
    ----------
    objective : c_t(w_{t-1}) = R(w_{t-1}) + g_t(w_{t-1}), g_t the mean loss of the batch
    gradients : |g_t|_q, of the subgradient taken at w_{t-1}
    suboptimality : P(w_{t-1}) - P*, P* from a certified optimum, not understated
    lipschitz : a bound on |g_t|_q for every batch: the largest |slope| |x_i|_q
    counts : at `marks`, how often each sample was drawn, for the best w in hindsight
    """

    problem: Problem
    mu: float
    objective: Vector
    gradients: Vector
    suboptimality: Vector
    lipschitz: float
    marks: list[int]
    counts: list[Vector]

    def regret(self) -> Vector:
        """At the marks: sum_t c_t(w_{t-1}) - min_w sum_t c_t(w), from a certified lower bound of the minimum."""
        sums, found = np.cumsum(self.objective), []
        for mark, count in zip(self.marks, self.counts, strict=True):
            hindsight = reference(self.problem.replace(weights=count), "auto", tol=1e-6)
            found.append(sums[mark - 1] - mark * hindsight.dual)
        return np.array(found)

    def regret_bound(self) -> Vector:
        """Lemma 1, after every step."""
        return pgs_regret(self.gradients, self.mu)


def journal(problem: Problem, steps: int, seed: int = 0, marks: int = 12) -> Journal:
    """Take single steps from zero, and write down what the theorems speak of."""
    state, rng, n = _begin(problem, seed, "last"), np.random.default_rng(seed), problem.shape[0]
    q, v, drawn = 1.0 / (1.0 - 1.0 / problem.penalty.norm), state.models.v[:, 0].copy(), np.zeros(n)
    best, kept = reference(problem, "auto", tol=1e-8).dual, checkpoints(steps, marks, min(10, steps))
    rows, counts = [], []
    for step in range(1, steps + 1):
        w = np.ascontiguousarray(state.models.last()[: problem.shape[1], 0])
        penalty = problem.penalty.value(w)
        sums, order = _take(state, rng, 1)
        gradient, v = state.models.v[:, 0] - v, state.models.v[:, 0].copy()  # f = 1: nothing shortens v
        np.add.at(drawn, order, 1.0)
        objective = penalty + float(sums[SUMS.index("loss")]) / state.batch
        rows.append((objective, float(np.linalg.norm(gradient, q)), problem.primal(w) - best))
        if step in kept:
            counts.append(drawn.copy())
    objectives, gradients, above = np.array(rows).T
    mu = problem.penalty.strong_convexity
    return Journal(problem, mu, objectives, gradients, above, _lipschitz(state, q), kept, counts)


def _lipschitz(state: DescentState, q: float) -> float:
    """max_i |slope_i| |x_i|_q over the domain: the loss's constant, or for a ball what |z_i| <= |x_i|_q B allows."""
    problem, radius = state.problem, float(state.models.radius[0])
    lengths = problem.X.row_norms(q)
    if np.isfinite(problem.loss.lipschitz):
        return problem.loss.lipschitz * float(lengths.max())
    ends = [np.abs(problem.loss.derivative(sign * lengths * radius, problem.y)) for sign in (-1.0, 1.0)]
    return float(np.max(np.maximum(*ends) * lengths))  # slopes of a convex loss are steepest at an end
