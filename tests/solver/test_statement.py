"""A third kind of problem, with its own judge and solver, is added from outside: no file of the package knows it.

Least squares with a fixed linear term, P(w) = |X w|^2 / 2 + c.w + lam/2 |w|^2. Its dual over n multipliers is
D(a) = -|a|^2 / 2 - |X'a + c|^2 / (2 lam), with a = X w and w = -(X'a + c) / lam at the optimum.
"""

import dataclasses
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

import fenchel as fl
from fenchel.certificate.bounds.rounding import PrimalBound
from fenchel.certificate.judge import Record, judge_of
from fenchel.data.products import gamma
from fenchel.problem.statement import Statement
from fenchel.solver.solve import Clock, Request, follow
from fenchel.steps.base import Candidate, Overflow, Solver
from fenchel.steps.choose import Solvers, solvers_of


@dataclass(frozen=True, eq=False)
class LinearTerm(Statement):
    X: fl.Design
    c: np.ndarray
    penalty: fl.penalties.L2
    intercept: bool = False

    traits = frozenset()

    @property
    def described(self):
        return f"a linear term with {self.penalty}"

    @property
    def shapes(self):
        n, d = self.shape
        return (d,), (), (n,)

    def replace(self, **changes):
        return dataclasses.replace(self, **changes)

    def in_domain(self, alpha):
        return alpha

    def first_intercept(self):
        return 0.0


@dataclass(frozen=True, eq=False)
class LinearBound:
    value: float
    lower: float
    alpha: np.ndarray
    how: str


class LinearJudge(Record):
    def __init__(self, problem):
        n, d = problem.shape
        self.problem, self.w, self.b = problem, np.zeros(d), 0.0
        self.primal = PrimalBound(np.inf, np.inf, np.zeros(n))
        # products and their squares have a relative error of 2 gamma(n + d + 1), as parts of sums of absolute values
        self.relative = 4.0 * gamma(n + d + 20)
        self.best = self._bound(np.zeros(n), "zero")

    @property
    def at_zero(self):
        return 0.0

    @property
    def evidence(self):
        return None

    def consider(self, w, b, scores=None):
        problem, product = self.problem, self.problem.X.matvec_bounded(w)
        ridge = 0.5 * problem.penalty.lam * float(w @ w)
        value = 0.5 * float(product.value @ product.value) + float(problem.c @ w) + ridge
        size = float(product.absolute @ product.absolute) + float(np.abs(problem.c) @ np.abs(w)) + ridge
        primal = PrimalBound(value, value + self.relative * size, product.value)
        if primal.upper < self.primal.upper:
            self.w, self.primal = w.copy(), primal
        return primal

    def _bound(self, alpha, how):
        lam, product = self.problem.penalty.lam, self.problem.X.rmatvec_bounded(alpha)
        v, size = product.value + self.problem.c, product.absolute + np.abs(self.problem.c)
        value = -0.5 * float(alpha @ alpha) - float(v @ v) / (2.0 * lam)
        return LinearBound(
            value, value - self.relative * (float(alpha @ alpha) + float(size @ size) / lam), alpha.copy(), how
        )

    def try_multipliers(self, alpha, how, u=None):
        self.last = self._bound(alpha, how)
        if self.last.lower > self.best.lower:
            self.best = self.last

    def try_gradient(self, z=None):
        self.try_multipliers(self.primal.z if z is None else z, "gradient")

    def fit(self, tol):
        self.try_gradient()


@dataclass(frozen=True)
class GradientDescent(Solver):
    """w - grad P(w) / L; gives up after some steps if it is told to, as a compiled solver may."""

    gives_up: int = 10**9

    name = "gradient descent"
    requires = frozenset()
    steps_per_check = 3
    passes_per_step = 2
    needs_storage = False
    summary = "steps along the gradient"

    def begin(self, problem, start, seed):
        length = 1.0 / (np.sum(problem.X.row_norms() ** 2) + problem.penalty.lam)
        return problem, start.w, length, 0

    def step(self, state):
        problem, w, length, steps = state
        if steps == self.gives_up:
            raise Overflow
        slope = problem.X.rmatvec(problem.X.matvec(w)) + problem.c + problem.penalty.lam * w
        return problem, w - length * slope, length, steps + 1

    def candidates(self, state):
        return [Candidate(state[1], 0.0)]


@dataclass(frozen=True)
class DualRidge(GradientDescent):
    """The optimum from n equations: (X X' + lam I) a = -X c, w = -(X'a + c) / lam; for few samples only."""

    name = "equations"
    summary = "few samples: one system of equations"

    def obstacle(self, problem):
        return None if problem.shape[0] <= 20 else "takes 20 samples at most"

    @property
    def ignores_start(self):
        return True

    def step(self, state):
        problem, _, length, steps = state
        X, lam = problem.design.matrix, problem.penalty.lam
        alpha = np.linalg.solve(X @ X.T + lam * np.eye(len(X)), -X @ problem.c)
        return problem, -(X.T @ alpha + problem.c) / lam, length, steps + 1


@pytest.fixture(autouse=True)
def registered():
    """Both registrations, from outside; they cannot be taken back, and nothing else has this type."""
    judge_of.register(LinearTerm, LinearJudge)
    solvers_of.register(LinearTerm, lambda problem: Solvers((DualRidge, GradientDescent)))


def problem(n=40, d=6, lam=0.5, seed=0):
    rng = np.random.default_rng(seed)
    return LinearTerm(fl.Design(rng.normal(size=(n, d))), rng.normal(size=d), fl.penalties.L2(lam))


def optimum(p):
    X = p.design.matrix
    return np.linalg.solve(X.T @ X + p.penalty.lam * np.eye(X.shape[1]), -p.c)


def exact(p, w):
    """P(w), every digit of it."""
    w = [Fraction(float(x)) for x in w]
    z = [sum(Fraction(float(x)) * u for x, u in zip(row, w, strict=True)) for row in p.design.matrix]
    linear = sum(Fraction(float(c)) * u for c, u in zip(p.c, w, strict=True))
    return sum(x * x for x in z) / 2 + linear + Fraction(p.penalty.lam) / 2 * sum(u * u for u in w)


@pytest.mark.parametrize(("n", "solver"), [(40, "gradient descent"), (10, "equations")])
def test_it_is_solved_and_certified(n, solver):
    p = problem(n)
    assert fl.explain(p).solver == solver
    result = fl.solve(p, tol=1e-9)
    assert (result.solver, result.status, result.certificate.ok) == (solver, "certified", True)
    np.testing.assert_allclose(result.w, optimum(p), atol=1e-4)
    np.testing.assert_allclose(result.alpha, p.X.matvec(result.w), atol=1e-4)
    assert result.certificate.weights_radius >= np.linalg.norm(result.w - optimum(p))
    assert result.trace["gap"][-1] == result.certificate.gap


@pytest.mark.parametrize("seed", range(5))
def test_its_gap_holds_in_exact_arithmetic(seed):
    p = problem(12, 5, seed=seed)
    best = exact(p, optimum(p))
    for steps in (1, 10, 1000):
        certificate = (result := fl.solve(p, "gradient descent", tol=1e-15, max_iter=steps, warn=False)).certificate
        assert exact(p, result.w) - best <= Fraction(certificate.gap)


@pytest.mark.parametrize("seed", range(5))
def test_anybodys_weights_are_certified(seed):
    p = problem(12, 5, seed=seed)
    rng = np.random.default_rng(seed)
    for w in (np.zeros(5), rng.normal(size=5), optimum(p) + 1e-7 * rng.normal(size=5)):
        certificate = fl.certify(p, w, alpha=p.X.matvec(optimum(p)), effort="high")
        gap = exact(p, w) - exact(p, optimum(p))
        assert gap <= Fraction(certificate.gap) <= gap + Fraction(1, 10**6)
    with pytest.raises(ValueError, match="w must be a vector of 5 weights"):
        fl.certify(p, np.zeros(6))


def test_callbacks_stop_it():
    seen = []
    result = fl.solve(problem(), tol=0.0, callback=lambda check: seen.append(check) or len(seen) == 4)
    assert (result.status, len(seen), result.n_iter) == ("callback", 4, 12)
    assert np.all(np.diff([check.gap for check in seen]) < 0.0)


def test_limits_and_starts_hold_for_it():
    p = problem()
    with pytest.warns(fl.NotCertifiedWarning, match="stopped after 7 steps"):
        short = fl.solve(p, tol=1e-12, max_iter=7)
    assert (short.status, short.n_iter) == ("max_iter", 7)
    near = fl.solve(p, tol=1e-5)
    assert fl.solve(p, tol=1e-6, start=near).n_iter < fl.solve(p, tol=1e-6).n_iter
    assert fl.solve(p, tol=1e-6, start=(optimum(p), 0.0, np.zeros(40))).n_iter <= 3
    with pytest.raises(ValueError, match="start must have 6 weights and 40 multipliers"):
        fl.solve(p, start=(np.zeros(5), 0.0, np.zeros(40)))


def test_a_tolerance_below_rounding_ends_it():
    assert fl.solve(problem(), tol=0.0, warn=False).status == "stalled"


def test_names_and_options_are_its_own():
    p = problem()
    with pytest.raises(ValueError, match="unknown solver 'newton'; there are 'auto', 'equations', 'gradient descent'"):
        fl.solve(p, "newton")
    with pytest.raises(TypeError, match="takes 20 samples at most; 'gradient descent' would work"):
        fl.solve(p, "equations")
    assert fl.solve(p, gives_up=5, warn=False).status == "overflow"


def test_another_goes_on_where_one_gives_up(monkeypatch):
    monkeypatch.setattr(DualRidge, "step", lambda self, state: (_ for _ in ()).throw(Overflow()))
    result = fl.solve(problem(10), tol=1e-9)
    assert (result.solver, result.status) == ("gradient descent", "certified")


def test_penalties_one_after_the_other():
    p = problem()
    penalties = [fl.penalties.L2(lam) for lam in (10.0, 1.0, 0.1)]
    results = list(follow(p, penalties, Request(tol=1e-9), None, Clock(None)))
    for penalty, result in zip(penalties, results, strict=True):
        assert result.status == "certified"
        np.testing.assert_allclose(result.w, optimum(p.replace(penalty=penalty)), atol=1e-4)


def test_several_at_once():
    problems = [problem(seed=seed) for seed in range(3)]
    for p, result in zip(problems, fl.solver.solve_many(problems, tol=1e-9, n_threads=2), strict=True):
        assert result.certificate.ok
        np.testing.assert_allclose(result.w, optimum(p), atol=1e-4)


def test_what_is_not_registered_is_said():
    class Other(LinearTerm):
        pass

    assert fl.solve(Other(problem().X, np.ones(6), fl.penalties.L2(1.0))).certificate.ok  # a subclass inherits

    class Unknown(Statement):
        X, penalty, intercept = problem().X, fl.penalties.L2(1.0), False
        traits, described, shapes, c = frozenset(), "nothing", ((6,), (), (40,)), np.ones(6)

        def replace(self, **changes):
            return self

        def in_domain(self, alpha):
            return alpha

        def first_intercept(self):
            return 0.0

    with pytest.raises(TypeError, match=r"no solvers for Unknown; register them with solvers_of\.register"):
        fl.solve(Unknown())
    with pytest.raises(TypeError, match=r"no judge for Unknown; register one with judge_of\.register"):
        fl.solve(Unknown(), solver=GradientDescent())
