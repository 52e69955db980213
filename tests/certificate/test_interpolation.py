"""Certificates of interpolations hold in exact arithmetic: feasible points, lower bounds, contradictions."""

import warnings
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

import fenchel as fl
from fenchel.certificate.interpolation.certificate import InterpolationCertificate
from fenchel.certificate.interpolation.equations import Equations, smallest_eigenvalue
from fenchel.certificate.interpolation.rational import null_vector
from fenchel.certificate.interpolation.triangular import Triangular
from fenchel.certificate.judge import judge_of
from fenchel.problem.penalties import Penalty


def exact(values):
    return [Fraction(float(x)) for x in np.ravel(values)]


def exact_scores(X, w, b=0.0):
    w = exact(w)
    rows = X.toarray() if sp.issparse(X) else np.asarray(X, dtype=np.float64)
    return [sum(Fraction(float(x)) * u for x, u in zip(row, w, strict=True)) + Fraction(float(b)) for row in rows]


def solved(problem, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fl.NotCertifiedWarning)
        return fl.solve(problem, **({"tol": 1e-8} | options))


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_a_model_called_exact_satisfies_every_constraint(seed, intercept):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(1, 10)), int(rng.integers(1, 12))
    X = rng.normal(size=(n, d)) * np.exp(3.0 * rng.normal())
    z = X @ rng.normal(size=d)
    low = z - rng.uniform(0.0, 0.5, size=n)
    high = np.where(rng.random(n) < 0.3, np.inf, z + rng.uniform(0.01, 0.5, size=n))
    result = solved(fl.Interpolation(X, fl.sets.Interval(low, high), intercept=intercept))
    assert result.certificate.feasible == "exact"
    for score, least, most in zip(exact_scores(X, result.w, result.b), low, high, strict=True):
        assert Fraction(float(least)) <= score
        assert np.isinf(most) or score <= Fraction(float(most))


def exact_dual(X, low, high, lam, alpha):
    """D(alpha) for L2, without rounding."""
    n, alpha = len(alpha), exact(alpha)
    support = sum(
        -a * Fraction(float(low[i])) if a > 0 else (-a * Fraction(float(high[i])) if a < 0 else 0)
        for i, a in enumerate(alpha)
    )
    v = [sum(a * Fraction(float(x)) for a, x in zip(alpha, column, strict=True)) / n for column in np.asarray(X).T]
    return -support / n - sum(x * x for x in v) / (2 * Fraction(lam))


@pytest.mark.parametrize("seed", range(8))
def test_the_lower_bound_holds_for_the_multipliers_as_they_are(seed):
    rng = np.random.default_rng(seed)
    n, d = 6, 9
    X, y = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-3, 4), rng.normal(size=n)
    problem = fl.Interpolation(X, fl.sets.Interval(y - 0.1, y + 0.1), fl.penalties.L2(0.3))
    for iterations in (1, 3, 50):
        result = solved(problem, solver="fista", max_iter=iterations)
        c, value = result.certificate, exact_dual(X, y - 0.1, y + 0.1, 0.3, result.alpha)
        lower = Fraction(c.primal) - Fraction(c.gap) if np.isfinite(c.gap) else None
        assert abs(value - Fraction(c.dual)) <= Fraction(1e-12) * (1 + abs(value))
        assert lower is None or lower <= value


def rational_solution(X, y):
    """The w of least 2-norm with X w = y, exactly: w = X'a, X X'a = y by elimination."""
    rows = [exact(row) for row in X]
    m = len(rows)
    table = [
        [sum(a * b for a, b in zip(rows[i], rows[j], strict=True)) for j in range(m)] + [Fraction(float(y[i]))]
        for i in range(m)
    ]
    for i in range(m):
        pivot = next(r for r in range(i, m) if table[r][i] != 0)
        table[i], table[pivot] = table[pivot], table[i]
        table[i] = [x / table[i][i] for x in table[i]]
        for r in range(m):
            if r != i and table[r][i] != 0:
                table[r] = [x - table[r][i] * u for x, u in zip(table[r], table[i], strict=True)]
    a = [row[-1] for row in table]
    return [sum(a[i] * rows[i][j] for i in range(m)) for j in range(len(rows[0]))]


@pytest.mark.parametrize("seed", range(6))
def test_equations_are_bounded_by_their_exact_solution(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(5, 8)), rng.normal(size=5)
    X[1] = X[0] + 10.0 ** -rng.integers(0, 5) * X[1]  # nearly dependent
    c = (result := solved(fl.Interpolation(X, fl.sets.Point(y)))).certificate
    best = rational_solution(X, y)
    value = sum(x * x for x in best) / 2
    assert c.feasible == "nearby"
    assert Fraction(c.primal) - Fraction(c.gap) <= value
    apart = [x - u for x, u in zip(best, exact(result.w), strict=True)]
    assert sum(x * x for x in apart) <= Fraction(c.weights_radius) ** 2
    worst = max(abs(s - Fraction(float(t))) for s, t in zip(exact_scores(X, result.w), y, strict=True))
    assert worst <= Fraction(c.violation)


@pytest.mark.parametrize("condition", [1.0, 1e4, 1e7, 1e10])
@pytest.mark.parametrize("seed", range(3))
def test_the_distance_to_a_solution_is_bounded_without_squares_of_the_condition(condition, seed):
    rng = np.random.default_rng(seed)
    m, d = 5, 8
    left, right = np.linalg.qr(rng.normal(size=(m, m)))[0], np.linalg.qr(rng.normal(size=(d, m)))[0]
    F = left * np.geomspace(1.0, 1.0 / condition, m) @ right.T * 10.0 ** rng.integers(-3, 4, size=(m, 1))
    x, metric = rng.normal(size=d), np.exp(rng.normal(size=d))
    f = F @ x + 1e-8 * rng.normal(size=m) * np.linalg.norm(F, axis=1)
    equations = Equations(F, f)
    rows = [[a * Fraction(float(g)) for a, g in zip(exact(row), metric, strict=True)] for row in F]
    missed = [Fraction(float(f[i])) - sum(a * b for a, b in zip(exact(F[i]), exact(x), strict=True)) for i in range(m)]
    table = [[sum(a * b for a, b in zip(rows[i], exact(F[j]), strict=True)) for j in range(m)] for i in range(m)]
    shortest = float(sum(a * b for a, b in zip(missed, solution(table, missed), strict=True))) ** 0.5
    found = Triangular.of(F, metric)
    assert found is not None
    length = float((found.moves(equations.residual(x), metric) / np.sqrt(metric))[0])
    assert shortest <= length <= 10.0 * shortest
    assert Triangular.of(np.vstack([F, F[:1]]), metric) is None
    assert equations.moves(x, metric) is not None


def solution(table, right):
    """By elimination, of fractions."""
    table = [[*row, r] for row, r in zip(table, right, strict=True)]
    for i in range(len(table)):
        table[i] = [x / table[i][i] for x in table[i]]
        for k in range(len(table)):
            if k != i:
                table[k] = [x - table[k][i] * y for x, y in zip(table[k], table[i], strict=True)]
    return [row[-1] for row in table]


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_gaps_of_equations_with_an_intercept_do_not_depend_on_the_scale_of_features(scale):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 100)), rng.normal(size=30)
    for storage in (np.asarray, np.asfortranarray, sp.csr_array):
        result = solved(fl.Interpolation(storage(scale * X), fl.sets.Point(y), intercept=True), tol=1e-9)
        assert result.certificate.relative_gap < 3e-10


@pytest.mark.parametrize("m", [1, 3, 20, 60])
def test_the_smallest_eigenvalue_is_bounded_from_below(m):
    rng = np.random.default_rng(m)
    F = rng.normal(size=(m, m + 5))
    C = F @ F.T
    T = 1.0 / np.sqrt(np.diagonal(C))
    C = C * T[:, None] * T
    bound, truth = smallest_eigenvalue(C, m + 5), float(np.linalg.eigvalsh(C)[0])
    assert 0.05 * truth < bound < truth


DEPENDENT = np.vstack([np.ones(4), 1.0 + np.arange(4.0), np.arange(4.0), 3.0 * np.ones(4) - np.arange(4.0) / 8.0])


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_equations_that_follow_from_others_are_left_out(storage):
    y = DEPENDENT @ [0.5, -1.0, 2.0, 0.25]  # exact
    equations = Equations.of(fl.Interpolation(storage(DEPENDENT), fl.sets.Point(y)))
    at = np.array([1.0, -0.5, 0.0, 2.0])
    moves, nearest = equations.moves(at, np.ones(4)), np.linalg.pinv(DEPENDENT) @ (y - DEPENDENT @ at)
    assert np.all(np.abs(nearest) <= moves)
    assert equations.independent.count == 2


@pytest.mark.parametrize("off", [1e-12, 0.5])
def test_dependent_rows_with_other_targets_prove_nothing(off):
    y = DEPENDENT @ [0.5, -1.0, 2.0, 0.25] + np.array([0.0, 0.0, off, 0.0])
    equations = Equations.of(fl.Interpolation(DEPENDENT, fl.sets.Point(y)))
    assert equations.moves(np.zeros(4), np.ones(4)) is None


def test_more_equations_than_weights_are_certified_where_they_agree():
    rng = np.random.default_rng(0)
    X, w = rng.integers(-4, 5, size=(40, 5)).astype(float), rng.integers(-8, 9, size=5) / 8.0
    c = fl.solve(fl.Interpolation(X, fl.sets.Point(X @ w)), tol=1e-6).certificate
    value = Fraction(float(w @ w)) / 2  # the only solution
    assert c.ok
    assert Fraction(c.dual) - Fraction(c.rounding) <= value <= Fraction(c.primal) + Fraction(c.gap)


@pytest.mark.parametrize("p", [2.0, 1.2, 1.01])
@pytest.mark.parametrize("kind", [fl.sets.Ball, lambda Z, r: [fl.sets.Ball(z, r[0]) for z in Z]])
def test_balls_under_p_norms_with_an_intercept_take_few_steps(p, kind):
    rng = np.random.default_rng(1)
    X = np.repeat(rng.integers(-4, 5, size=(6, 9)), 2, axis=0).astype(float)
    Z = X @ rng.normal(size=(9, 2)) + [1.0, -2.0]
    result = fl.solve(
        fl.Interpolation(X, kind(Z, np.ones(12)), fl.penalties.LpSquared(1.0, p), intercept=True), max_iter=400
    )
    assert result.certificate.ok


def test_a_contradiction_of_two_samples_is_proven_where_all_have_multipliers():
    rng = np.random.default_rng(218)
    X = rng.integers(-4, 5, size=(13, 13)).astype(float)
    X = np.vstack([X, X[:6]])
    Z = X @ rng.integers(-8, 9, size=(13, 3)) / 8.0
    Z[-1] += 100.0
    sets = [fl.sets.Point(z) if i % 2 else fl.sets.Ball(z, 1.0) for i, z in enumerate(Z)]
    with pytest.raises(fl.Infeasible) as raised:
        fl.solve(fl.Interpolation(X, sets, fl.penalties.ElasticNet(0.5, 0.5), intercept=True), max_iter=3000)
    assert raised.value.certificate.verify(X, sets)


def test_errors_of_certify_speak_of_outputs():
    problem = fl.Interpolation(np.eye(3), fl.sets.Ball(np.zeros((3, 2)), np.ones(3)))
    with pytest.raises(ValueError, match=r"w must be a matrix of shape \(2, 3\): a row of weights for each output"):
        fl.certify(problem, np.zeros(3))


def test_without_a_feasible_point_nothing_is_called_certified():
    X = np.random.default_rng(0).normal(size=(30, 4))
    y = X @ np.ones(4)  # rounded: exactly contradictory, or not; neither can be proven
    c = (result := solved(fl.Interpolation(X, fl.sets.Point(y)))).certificate
    assert not c.ok
    assert not c.feasible
    assert c.violation < 1e-10
    assert "no feasible model is known" in str(c)
    np.testing.assert_allclose(result.w, 1.0, atol=1e-8)


def test_a_run_that_ends_early_says_what_is_missing():
    X = np.random.default_rng(0).normal(size=(20, 40))
    problem = fl.Interpolation(X, fl.sets.Point(np.ones(20)))
    with pytest.warns(fl.NotCertifiedWarning, match="the constraints are met within .*no feasible model is known"):
        fl.solve(problem, solver="dykstra", max_iter=2)


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_repeated_samples_are_certified(storage):
    X, y = np.random.default_rng(6).normal(size=(11, 30)), np.arange(11.0)
    X[7], y[7] = X[2], y[2]
    assert solved(fl.Interpolation(storage(X), fl.sets.Point(y))).certificate.ok


@pytest.mark.parametrize("seed", range(4))
def test_without_a_feasible_point_the_lower_bound_is_one(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(5, 8)), rng.normal(size=5)
    best = rational_solution(X, y)
    value, alpha = sum(x * x for x in best) / 2, 5.0 * np.linalg.solve(X @ X.T, y)
    c = fl.certify(fl.Interpolation(X, fl.sets.Point(y)), np.zeros(8), 0.0, alpha, effort="low")
    assert np.isinf(c.gap)
    assert Fraction(c.dual) - Fraction(c.rounding) <= value <= Fraction(c.dual) + Fraction(c.rounding)
    assert float(str(c).split("penalty below ")[1].split(",")[0]) <= value


def test_the_divergence_from_a_large_centre_is_bounded():
    rng = np.random.default_rng(7)
    centre = 1e4 * rng.normal(size=6)
    X = rng.normal(size=(3, 6))
    sets = fl.sets.Interval(X @ centre + 1e-3, np.inf)
    c = (result := solved(fl.Interpolation(X, sets, centre=centre), tol=1e-6)).certificate
    assert c.ok
    np.testing.assert_allclose(c.primal, 0.5 * np.sum((result.w - centre) ** 2), rtol=1e-6)


def test_many_terms_do_not_make_a_divergence_too_small():
    d = 100_000
    centre = np.full(d, np.sqrt(1.02 * 2.0**-51))
    centre[:128] = 1.0
    X = sp.csr_array(([1.0], ([0], [0])), shape=(1, d))
    for penalty in (fl.penalties.L2(1.0), fl.penalties.LpSquared(1.0, 1.9)):
        c = fl.certify(fl.Interpolation(X, fl.sets.Interval(0.5, 2.0), penalty, centre=centre), centre)
        assert c.gap >= 0.0


# Contradictions -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array, sp.csc_array])
def test_a_sample_with_two_targets_is_a_contradiction(storage, intercept):
    X = np.random.default_rng(1).normal(size=(6, 30))
    X[3] = X[1]
    sets = fl.sets.Point(np.arange(6.0))
    with pytest.raises(fl.Infeasible, match="2 of them") as caught:
        fl.solve(fl.Interpolation(storage(X), sets, intercept=intercept))
    certificate = caught.value.certificate
    assert set(np.flatnonzero(certificate.multipliers)) == {1, 3}
    assert certificate.verify(storage(X), sets)
    assert not certificate.verify(storage(X), fl.sets.Point(np.array([0.0, 1.0, 2.0, 1.0, 4.0, 5.0])))
    moved = X.copy()
    moved[3, 0] += 1e-9
    assert not certificate.verify(storage(moved), sets)


def test_a_zero_row_with_a_target_is_a_contradiction():
    X = np.vstack([np.eye(3), np.zeros(3)])
    with pytest.raises(fl.Infeasible, match="1 of them"):
        fl.solve(fl.Interpolation(X, fl.sets.Point(np.ones(4))))
    assert solved(fl.Interpolation(X, fl.sets.Interval(np.zeros(4), 1.0))).certificate.ok


@pytest.mark.parametrize("zeros", [2, 3, 7])
@pytest.mark.parametrize("n", [1, 40, 600])
def test_several_rows_of_zeros_are_a_contradiction(zeros, n):
    X = np.vstack([np.zeros((zeros, 5)), 1.0 + np.random.default_rng(0).random((n, 5))])
    sets = fl.sets.HalfLine(1.0, 1.0)
    with pytest.raises(fl.Infeasible) as caught:
        fl.solve(fl.Interpolation(X, sets))
    assert caught.value.certificate.verify(X, sets)
    least = solved(fl.Interpolation(X, sets, on_infeasible="least_violation"), tol=1e-4)
    assert least.certificate.violation >= 1.0 - 1e-12


def test_a_search_for_a_point_inside_ends_when_time_is_over():
    rng = np.random.default_rng(1)
    X, z = rng.normal(size=(20, 30)), rng.normal(size=20)
    problem = fl.Interpolation(X, fl.sets.Interval(z - 0.1, z + 0.1))
    w = np.linalg.lstsq(X, z + 0.101, rcond=None)[0]
    for over in (True, False):
        judge = judge_of(problem)
        judge.late = lambda over=over: over
        judge.consider(w, 0.0)
        judge.fit(1e-3)
        assert (judge.inside is None) == over


def test_multipliers_of_a_proof_are_checked_without_rounding():
    rng = np.random.default_rng(3)
    X, sign = rng.normal(size=(40, 5)), np.sign(rng.normal(size=40))
    with pytest.raises(fl.Infeasible) as caught:
        fl.solve(fl.Interpolation(X, fl.sets.HalfLine(1.0, sign)))
    alpha = caught.value.certificate.multipliers
    assert np.all(sign * alpha >= 0.0)
    v = [sum(a * Fraction(float(x)) for a, x in zip(exact(alpha), column, strict=True)) for column in X.T]
    assert max(map(abs, v)) <= Fraction(1e-6)
    assert sum(map(abs, exact(alpha))) > 1  # S: every margin is 1


def test_the_least_violation_is_that_of_least_squares():
    rng = np.random.default_rng(4)
    X, y, s = rng.normal(size=(50, 6)), rng.normal(size=50), rng.uniform(0.5, 2.0, size=50)
    problem = fl.Interpolation(X, fl.sets.Point(y), intercept=True, sample_weight=s, on_infeasible="least_violation")
    result = fl.solve(problem, tol=1e-6)
    A = np.column_stack([X, np.ones(50)]) * np.sqrt(s)[:, None]
    best = np.linalg.lstsq(A, y * np.sqrt(s), rcond=None)[0]
    c = result.certificate
    assert (c.feasible, c.ok) == ("contradiction", True)
    rms = np.sqrt(np.sum((A @ best - y * np.sqrt(s)) ** 2) / s.sum())
    assert c.primal - c.gap <= rms <= c.primal * (1.0 + 1e-12)
    np.testing.assert_allclose(np.append(result.w, result.b), best, atol=1e-6)
    assert "contradict each other" in str(c)


# Text and files -------------------------------------------------------------------------------------------------------


def test_certificates_go_through_json():
    X = np.random.default_rng(0).normal(size=(5, 9))
    c = solved(fl.Interpolation(X, fl.sets.Point(np.ones(5)))).certificate
    assert InterpolationCertificate.from_json(c.to_json()) == c


def test_anybodys_weights_are_certified():
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(10, 30)), rng.normal(size=10)
    problem = fl.Interpolation(X, fl.sets.Point(y))
    c = fl.certify(problem, np.linalg.pinv(X) @ y, effort="high")
    assert (c.feasible, c.ok) == ("nearby", True)
    far = fl.certify(problem, np.zeros(30))
    assert not far.ok
    assert far.violation >= np.abs(y).max()


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("beside", [1.01, 1.001, 1.0 + 1e-9])
def test_multipliers_that_underflow_when_scaled_prove_nothing_false(seed, beside):
    """The best multiple of the given multipliers is below the smallest normal numbers."""
    m = np.random.default_rng(seed).uniform(1.0, 2.0, 2)
    size, end = m[0] * 2.0**575, m[1] * 2.0**74
    X = size * np.vstack([np.eye(1, 5), np.pad(np.random.default_rng(0).normal(size=(20, 4)), ((0, 0), (1, 0)))])
    low = np.r_[end, np.full(20, -np.inf)]
    problem = fl.Interpolation(X, fl.sets.Interval(low, np.full(21, np.inf)))
    best = (Fraction(end) / Fraction(size)) ** 2 / 2
    w = beside * end / size
    certificate = fl.certify(problem, np.r_[w, np.zeros(4)], alpha=np.r_[1e-100, np.zeros(20)])
    assert Fraction(certificate.dual) - Fraction(certificate.rounding) <= best
    assert Fraction(certificate.gap) >= Fraction(w) ** 2 / 2 - best


# Samples with the same features ---------------------------------------------------------------------------------------


def contradiction(problem, X, sets, **options):
    with pytest.raises(fl.Infeasible) as raised:
        fl.solve(problem, **options)
    certificate = raised.value.certificate
    assert certificate.verify(X, sets)
    return certificate


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_several_samples_with_two_labels_are_a_contradiction_found_before_any_step(storage):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 200)), np.sign(rng.normal(size=32))
    X = storage(np.vstack([X, X[:2]]))
    y[30:] = -y[:2]
    sets, seen = fl.sets.HalfLine(1.0, y), []
    for intercept in (False, True):
        problem = fl.Interpolation(X, sets, intercept=intercept)
        certificate = contradiction(problem, X, sets, callback=seen.append)
        assert np.count_nonzero(certificate.multipliers) == 2
    assert not seen
    with pytest.raises(fl.Infeasible):
        fl.MinNormRegressor().fit(X, y)


@pytest.mark.parametrize(
    "sets",
    [
        lambda Z: fl.sets.Point(Z),
        lambda Z: fl.sets.Box(Z - 0.1, Z + 0.1),
        lambda Z: fl.sets.Ball(Z, 0.1),
        lambda Z: [fl.sets.Ball(z, 0.1) if i % 2 else fl.sets.Point(z) for i, z in enumerate(Z)],
    ],
)
@pytest.mark.parametrize("penalty", [fl.penalties.L2(1.0), fl.penalties.LpSquared(1.0, 1.3)])
def test_a_sample_with_two_targets_in_space_is_a_contradiction(sets, penalty):
    rng = np.random.default_rng(1)
    X, Z = rng.normal(size=(8, 30)), rng.normal(size=(9, 3))
    X, constraints = np.vstack([X, X[3]]), sets(Z)
    problem = fl.Interpolation(X, constraints, penalty, outputs=3)
    contradiction(problem, X, constraints)
    least = solved(problem.replace(on_infeasible="least_violation"), tol=1e-3, max_iter=500)
    assert least.certificate.feasible == "contradiction"


def test_sets_that_touch_are_no_contradiction():
    X = np.array([[1.0, 2.0], [1.0, 2.0], [0.0, 1.0]])
    result = solved(fl.Interpolation(X, fl.sets.Interval([0.0, 1.0, 0.0], [1.0, 2.0, 5.0])))
    assert result.certificate.violation < 1e-9
    apart = fl.sets.Interval([0.0, 1.5, 0.0], [1.0, 2.0, 5.0])
    without = solved(fl.Interpolation(X, apart, sample_weight=[1.0, 0.0, 1.0]))
    assert without.certificate.feasible == "exact"


def test_a_null_space_of_several_dimensions_proves_what_its_vectors_near_the_multipliers_do():
    rows = np.array([[1.0, 3.0], [1.0, 3.0], [2.0, 5.0], [4.0, 10.0]])
    near = np.array([1.0, -1.0 + 1e-9, 2.0, -1.0 - 1e-9])
    y = null_vector(rows, near)
    assert y is not None
    np.testing.assert_allclose([float(x) for x in y], near / 2.0, atol=1e-8)
    assert all(sum(a * Fraction(x) for a, x in zip(y, column, strict=True)) == 0 for column in rows.T)
    assert null_vector(np.eye(2), np.ones(2)) is None


# Sets and penalties of one's own --------------------------------------------------------------------------------------


class OwnInterval:
    def project(self, z):
        return np.clip(z, 1.0, 3.0)

    def support(self, u):
        return np.where(u > 0.0, 3.0 * u, u)


class OwnBall:
    """Of radius 1/2 around (1, 1); projections are rounded also inside."""

    def project(self, z):
        away = z - 1.0
        length = np.linalg.norm(away, axis=1, keepdims=True)
        return 1.0 + away / np.maximum(1.0, 2.0 * length)

    def support(self, u):
        return u.sum(axis=1) + 0.5 * np.linalg.norm(u, axis=1)


class OwnPenalty(Penalty):
    """|w|_2^2 / 2 + |w|_4^4 / 4, of which only the necessary is told."""

    lam, strong_convexity = 1.0, 1.0

    def value(self, w):
        return float(np.sum(0.5 * w**2 + 0.25 * w**4))

    def grad_conjugate(self, v):
        """The real root of w^3 + w = v."""
        w = np.cbrt(v)
        for _ in range(60):
            w = w - (w**3 + w - v) / (3.0 * w**2 + 1.0)
        return w

    def conjugate(self, v):
        w = self.grad_conjugate(v)
        return float(v @ w) - self.value(w)

    def prox(self, w, t):
        raise NotImplementedError


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("penalty", [fl.penalties.L2(1.0), OwnPenalty()])
@pytest.mark.parametrize(("sets", "k"), [(OwnInterval(), 1), (OwnBall(), 2), (fl.sets.Point(1.0), 1)])
def test_sets_and_penalties_of_ones_own_are_certified(sets, k, penalty, intercept):
    X = np.random.default_rng(0).normal(size=(15, 25)) * 0.3
    if k == 1 and not isinstance(sets, OwnInterval):
        sets = fl.sets.Point(np.random.default_rng(1).normal(size=15))
    problem = fl.Interpolation(X, sets, penalty, outputs=k, intercept=intercept)
    result = solved(problem, tol=1e-6, max_iter=3000)
    assert result.status == "certified"
    assert result.certificate.violation < 1e-5
    assert result.certificate.feasible == ("nearby" if isinstance(sets, fl.sets.Point) else "exact")


@pytest.mark.parametrize("seed", range(5))
def test_the_bound_of_a_penalty_near_a_point_holds_by_convexity_alone(seed):
    rng = np.random.default_rng(seed)
    w, error = rng.normal(size=6), 0.1 * rng.random(6)
    bound = OwnPenalty().value_upper_near(w, error)
    corners = w + error * rng.choice([-1.0, 1.0], size=(200, 6))
    assert max(OwnPenalty().value(corner) for corner in corners) <= bound
    tiny = OwnPenalty().value_upper_near(w, 1e-12 * error)
    assert OwnPenalty().value(w) <= tiny <= OwnPenalty().value(w) * (1.0 + 1e-10)
    assert OwnPenalty().value_upper_near(w, np.zeros(6)) >= OwnPenalty().value(w)


def test_bounded_sets_of_ones_own_have_a_lower_bound_with_intercepts():
    rng = np.random.default_rng(3)
    X, Z = 0.3 * rng.normal(size=(12, 20)), rng.normal(size=(12, 2))

    class Balls(OwnBall):
        def project(self, z):
            return super().project(z - Z + 1.0) + Z - 1.0

        def support(self, u):
            return super().support(u) + (u * (Z - 1.0)).sum(axis=1)

    own, known = (
        solved(fl.Interpolation(X, sets, outputs=2, intercept=True), tol=1e-6)
        for sets in (Balls(), fl.sets.Ball(Z, 0.5))
    )
    assert own.status == known.status == "certified"
    assert own.certificate.primal == pytest.approx(known.certificate.primal, rel=1e-5)
    assert own.certificate.primal > 1e-3
    twice = fl.Interpolation(np.vstack([X[:11], X[:1]]), Balls(), outputs=2, intercept=True)
    with pytest.raises(fl.Infeasible):
        fl.solve(twice)


def test_a_projection_that_is_infinite_is_an_error():
    class Wrong(OwnInterval):
        def project(self, z):
            return np.full_like(z, np.inf)

    with pytest.raises(ValueError, match="must return points of the set"):
        fl.solve(fl.Interpolation(np.eye(3), Wrong()))


def test_sets_of_single_samples_tell_the_number_of_scores():
    X, Z = np.random.default_rng(0).normal(size=(4, 9)), np.arange(12.0).reshape(4, 3)
    one, other = (fl.Interpolation(X, sets) for sets in ([fl.sets.Point(z) for z in Z], fl.sets.Point(Z)))
    assert one.outputs == other.outputs == 3
    np.testing.assert_allclose(fl.solve(one).w, fl.solve(other).w, atol=1e-10)
    assert fl.Interpolation(X, [fl.sets.Point(1.0)] * 4).outputs == 1
    assert fl.Interpolation(X, [fl.sets.Interval(0.0, np.ones(2)), *[fl.sets.Point(1.0)] * 3]).outputs == 2
