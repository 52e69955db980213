"""Passes over active constraints: D never falls, every kind of interval, extreme scales, rows that are nearly equal."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import fenchel as fl
from fenchel.data import limits
from fenchel.steps.base import Start
from fenchel.steps.interpolation import newton
from fenchel.steps.interpolation.active import ActivePasses
from fenchel.steps.interpolation.dykstra import Dykstra
from fenchel.steps.interpolation.passes import CompiledPasses

BY_ROWS = {
    "C": np.ascontiguousarray,
    "csr": sp.csr_array,
    "float32": lambda X: X.astype(np.float32),
    "csr float32": lambda X: sp.csr_array(X.astype(np.float32)),
}


def separable(n=600, d=1000, twins=0, seed=0):
    """Labels that some weights satisfy; the last rows are nearly equal to the first ones."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.3)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    if twins:
        X[-twins:] = X[:twins] + 0.01 * rng.normal(size=(twins, d))
        y[-twins:] = y[:twins]
    return X, y


def half_space(n, d, apart=0.3, seed=4):
    """Normal samples away from a plane, far more of them than features: few are active."""
    rng = np.random.default_rng(seed)
    X, w = rng.normal(size=(n, d)), rng.normal(size=d)
    keep = np.abs(X @ w) > apart * np.linalg.norm(w)
    return X[keep], np.sign(X[keep] @ w)


def mixed_intervals(n=600, seed=2):
    """Two-sided, one-sided, and points."""
    rng = np.random.default_rng(seed)
    centre = rng.normal(size=n)
    low, high = centre - rng.random(n), centre + rng.random(n)
    low[:100], high[100:200], high[200:250] = -np.inf, np.inf, low[200:250]
    return fl.sets.Interval(low, high)


def stated(kind):
    """A problem of each kind that these passes are for."""
    X, y = separable()
    margins, weights = fl.sets.HalfLine(1.0, y), np.random.default_rng(1).integers(0, 3, size=len(y)).astype(float)
    return {
        "margins": lambda: fl.Interpolation(X, margins),
        "lam": lambda: fl.Interpolation(X, margins, fl.penalties.L2(7.0)),
        "intercept": lambda: fl.Interpolation(X, margins, intercept=True),
        "weights": lambda: fl.Interpolation(sp.csr_array(X), margins, sample_weight=weights),
        "weights and intercept": lambda: fl.Interpolation(X, margins, intercept=True, sample_weight=weights),
        "intervals": lambda: fl.Interpolation(sp.csr_array(X), mixed_intervals()),
        "intervals and intercept": lambda: fl.Interpolation(X, mixed_intervals(), intercept=True),
        "centre": lambda: fl.Interpolation(X, margins, centre=np.random.default_rng(3).normal(size=X.shape[1])),
    }[kind]()


KINDS = ["margins", "lam", "intercept", "weights", "weights and intercept", "intervals", "centre"]
KINDS += ["intervals and intercept"]


def passes_of(problem, seed=0):
    start = Start(np.zeros(problem.shapes[0]), problem.first_intercept(), np.zeros(problem.shapes[2]))
    made = ActivePasses.of(problem, start, seed)
    assert made is not None
    made.step()
    return made


def rounds_to(problem, violation, most=200):
    passes = passes_of(problem)
    for k in range(most):
        if passes.violation <= violation:
            return k
        passes.step()
    return most


@pytest.fixture
def rounds(monkeypatch):
    """Counts the rounds of `solve`."""
    seen, step = [], ActivePasses.step

    def counted(self):
        seen.append(self)
        step(self)

    monkeypatch.setattr(ActivePasses, "step", counted)
    return seen


@pytest.mark.parametrize("kind", KINDS)
def test_passes_alone_satisfy_the_constraints(kind):
    passes = passes_of(stated(kind))
    for _ in range(60):
        passes.step()
    assert passes.violation <= 1e-6


@pytest.mark.parametrize("kind", ["margins", "lam", "weights", "intervals", "centre"])
def test_the_dual_bound_never_falls(kind):
    passes = passes_of(stated(kind))
    values = [passes.iterates.objective()]
    for _ in range(12):
        passes.step()
        values.append(passes.iterates.objective())
    assert np.all(np.diff(values) >= -1e-12 * np.abs(values[-1]))


@pytest.mark.parametrize("kind", KINDS)
def test_images_belong_to_their_multipliers(kind):
    passes = passes_of(stated(kind))
    for _ in range(6):
        passes.step()
    u = passes.iterates.u.copy()
    passes.refresh()
    np.testing.assert_allclose(u, passes.iterates.u, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("kind", ["margins", "lam", "weights"])
def test_the_estimate_of_the_gap_is_that_of_the_certificate(kind):
    problem = stated(kind)
    passes = passes_of(problem)
    for _ in range(3):
        passes.step()
    model = passes.candidates()[0]
    primal, gap = passes.estimate()
    certificate = fl.certify(problem, model.w, model.b, alpha=model.alpha)
    assert primal == pytest.approx(certificate.primal, rel=1e-9)
    assert gap == pytest.approx(certificate.gap, rel=0.01)  # the judge scales the multipliers, too


@pytest.mark.parametrize("kind", ["intervals", "centre"])
def test_there_is_no_estimate_where_a_multiple_of_the_model_is_not_feasible(kind):
    assert passes_of(stated(kind)).estimate() == (np.inf, np.inf)


@pytest.mark.parametrize("storage", BY_ROWS)
@pytest.mark.parametrize("intercept", [False, True])
def test_half_lines_are_certified(rounds, storage, intercept):
    X, y = separable()
    X = BY_ROWS[storage](X)
    result = fl.solve(fl.Interpolation(X, fl.sets.HalfLine(1.0, y), intercept=intercept), tol=1e-5)
    assert rounds
    assert result.status == "certified"
    exact = (X.toarray() if sp.issparse(X) else X).astype(float)
    assert np.min(y * (exact @ result.w + result.b)) >= 1.0 - 1e-12


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_certified(rounds, kind):
    problem = stated(kind)
    result = fl.solve(problem, tol=1e-4)
    assert rounds
    assert result.status == "certified"
    Z = problem.scores(result.w, result.b)[:, None]
    violation = np.abs(problem.constraints.project(Z) - Z)[problem.counts].max()
    assert violation <= result.certificate.violation + 1e-11


@pytest.mark.parametrize("scale", [1e-100, 1e-80, 1e-3, 1e3, 1e79, 1e80, 1e100])
@pytest.mark.parametrize("intercept", [False, True])
def test_features_of_any_scale_are_certified(scale, intercept):
    X, y = separable()
    problem = fl.Interpolation(sp.csr_array(scale * X), fl.sets.HalfLine(1.0, y), intercept=intercept)
    assert fl.solve(problem, tol=1e-4).status == "certified"


@pytest.mark.parametrize("n", [499, 600])
@pytest.mark.parametrize("ratio", [1e3, 1e16])
def test_weights_of_any_ratio_are_certified(n, ratio):
    rng = np.random.default_rng(7)
    X, w = rng.normal(size=(n, 3)), np.array([0.6, 0.0, 0.8])
    y = np.where(X @ w >= 0.0, 1.0, -1.0)
    X += 0.1 * y[:, None] * w
    problem = fl.Interpolation(X, fl.sets.HalfLine(1.0, y), sample_weight=rng.choice([1.0, ratio], size=n))
    assert fl.solve(problem, tol=1e-4).status == "certified"


@pytest.mark.parametrize("solver", ["auto", "fista"])
def test_squares_that_overflow_end_a_run(solver):
    X, y = separable()
    with pytest.warns(fl.NotCertifiedWarning):
        result = fl.solve(fl.Interpolation(1e160 * X, fl.sets.HalfLine(1.0, y)), solver=solver)
    assert result.status == "overflow"


def test_contradictions_are_proven(rounds):
    X, y = separable()
    X[1], y[1] = 2.0 * X[0], -y[0]
    with pytest.raises(fl.Infeasible) as caught:
        fl.solve(fl.Interpolation(sp.csr_array(X), fl.sets.HalfLine(1.0, y)))
    assert rounds
    assert caught.value.certificate.verify(sp.csr_array(X), fl.sets.HalfLine(1.0, y))


def test_a_run_that_ends_early_has_its_model():
    X, y = separable()
    problem = fl.Interpolation(sp.csr_array(X), fl.sets.HalfLine(1.0, y))
    with pytest.warns(fl.NotCertifiedWarning):
        result = fl.solve(problem, tol=1e-12, max_iter=2)
    assert result.status == "max_iter"
    assert np.isfinite(result.certificate.dual)
    assert result.w.any()


def over_relaxed(A, rows, alpha, y, damping):
    """One step for each of these rows, and further steps while they raise D by more than the mean; in NumPy."""
    n, expected = len(A), alpha.copy()
    v = A.T @ alpha / n

    def visit(i):
        q = damping * (A[i] @ A[i]) / n
        after = y[i] * max(0.0, y[i] * (expected[i] + (y[i] - A[i] @ v) / q))
        change, expected[i] = after - expected[i], after
        v[:] += change / n * A[i]
        return q * change**2

    gains = [visit(i) for i in rows]
    mean, made = np.mean(gains), 0
    rest = [i for i, gain in zip(rows, gains, strict=True) if gain > mean]
    while rest and made + len(rest) <= len(rows):
        made += len(rest)
        rest = [i for i in rest if visit(i) > mean]
    return expected, v


@pytest.mark.parametrize("storage", BY_ROWS)
@pytest.mark.parametrize("twins", [0, 10])
def test_a_pass_visits_samples_with_large_steps_again(storage, twins):
    X, y = separable(50, 20, twins)
    passes = passes_of(fl.Interpolation(BY_ROWS[storage](X), fl.sets.HalfLine(1.0, y)))
    rows, (alpha, u) = np.random.default_rng(5).permutation(50)[:30], (x.copy() for x in passes.iterates.point())
    A = passes.problem.X.rows(np.arange(50))
    expected, v = over_relaxed(A, rows, alpha, y, 0.75)
    passes.passes.over(rows, 0.75)(alpha, u)
    np.testing.assert_allclose(alpha, expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(u[:-1], v, rtol=1e-9, atol=1e-12)


def test_nearly_equal_rows_take_few_rounds(monkeypatch):
    X, y = separable(twins=30)
    problem = fl.Interpolation(sp.csr_array(X), fl.sets.HalfLine(1.0, y))
    monkeypatch.setattr(ActivePasses, "_maximise_over", lambda self, rows: False)
    again = rounds_to(problem, 1e-5)

    def plain(self, rows, damping):
        return lambda alpha, u: self.plain(rows, alpha, u)

    monkeypatch.setattr(CompiledPasses, "over", plain)
    assert 3 * again < rounds_to(problem, 1e-5)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(("n", "d", "apart"), [(1500, 50, 0.3), (9000, 30, 0.3), (3000, 100, 0.02)])
def test_few_active_samples_are_solved_for_exactly(n, d, apart, intercept):
    X, y = half_space(n, d, apart)
    problem = fl.Interpolation(X, fl.sets.HalfLine(1.0, y), intercept=intercept)
    result = fl.solve(problem, tol=1e-8)
    assert result.status == "certified"
    assert result.n_iter < 250  # passes alone take thousands


def test_the_same_seed_gives_the_same_bits():
    X, y = separable()
    problem = fl.Interpolation(sp.csr_array(X), fl.sets.HalfLine(1.0, y))
    first, second = (fl.solve(problem, tol=1e-5, random_state=7) for _ in range(2))
    np.testing.assert_array_equal(first.w, second.w)
    other = fl.solve(problem, tol=1e-5, random_state=8)
    assert np.any(first.w != other.w)


@pytest.mark.parametrize("intercept", [False, True])
def test_momentum_follows_for_more_samples_than_a_factorisation_takes(monkeypatch, intercept):
    begun, begin = [], Dykstra.begin
    monkeypatch.setattr(Dykstra, "begin", lambda self, *given: (begun.append(self), begin(self, *given))[1])
    monkeypatch.setattr(newton, "TUNING", replace(newton.TUNING, rounds=1))  # passes are judged after one
    X, y = half_space(12000, 30, apart=0.5)
    assert not limits.fits(len(X), len(X))
    result = fl.solve(fl.Interpolation(X, fl.sets.HalfLine(1.0, y), intercept=intercept), tol=1e-3)
    assert result.status == "certified"
    assert [method.accelerate for method in begun] == [False, True]


def test_inner_products_of_some_rows():
    X, y = separable(40, 30)
    for matrix in (X, sp.csr_array(X), sp.csc_array(X)):
        problem = fl.Interpolation(matrix, fl.sets.HalfLine(1.0, y))
        for rows in (np.arange(40)[::-1], np.array([3, 1, 7])):
            np.testing.assert_allclose(problem.gram_of(rows), X[rows] @ X[rows].T, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(problem.row_gram, X @ X.T, rtol=1e-12, atol=1e-12)
