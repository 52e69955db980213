"""Laws that every penalty obeys."""

from fractions import Fraction as Q

import numpy as np
import pytest

from fenchel.problem import penalties
from fenchel.problem.penalties.base import NormPenalty
from fenchel.problem.vectors import dual_exponent, p_norm
from tests.helpers.registry import name, penalties_for

D = 7
PENALTIES = penalties_for(D)
every_penalty = pytest.mark.parametrize("penalty", PENALTIES, ids=name)
with_prox = pytest.mark.parametrize("penalty", [p for p in PENALTIES if p.analysis is None], ids=name)


def domain_point(penalty, rng, d=D):
    """A random point with finite penalty."""
    if isinstance(penalty, penalties.Entropy):
        return rng.dirichlet(np.ones(d))
    w = rng.normal(size=d)
    if isinstance(penalty, penalties.NonNegativeL1 | penalties.NonNegativeElasticNet):
        return np.abs(w)
    radius = getattr(penalty, "radius", None)
    return w if radius is None else w * (radius * rng.random() / p_norm(w, penalty.norm))


def dual_point(penalty, rng, d=D):
    """A random v with finite conjugate."""
    if penalty.is_zero:
        return np.zeros(d)
    v = rng.normal(size=d) * np.exp(rng.normal())
    if isinstance(penalty, penalties.FusedL1):
        basis = penalty.null_space(d).basis
        v -= basis @ np.linalg.lstsq(basis, v, rcond=None)[0]
    if isinstance(penalty, NormPenalty):
        size = penalty.dual_norm(v)
        v *= penalty.lam * rng.random() / size if size > 0.0 else 1.0  # negative entries are free for weights >= 0
    return v


def test_every_exported_penalty_is_in_the_registry():
    exported = {getattr(penalties, n) for n in penalties.__all__} - {penalties.Penalty, penalties.Subgradients}
    assert {type(p) for p in PENALTIES} == exported


@every_penalty
def test_fenchel_young_inequality(penalty):
    rng = np.random.default_rng(0)
    for _ in range(300):
        w, v = domain_point(penalty, rng), dual_point(penalty, rng)
        assert penalty.value(w) + penalty.conjugate(v) - v @ w >= -1e-10


@every_penalty
def test_conjugate_is_attained_at_its_gradient(penalty):
    if not penalty.strong_convexity:
        with pytest.raises(TypeError, match="not strongly convex"):
            penalty.grad_conjugate(np.ones(D))
        return
    rng = np.random.default_rng(1)
    for _ in range(200):
        v = dual_point(penalty, rng)
        w = penalty.grad_conjugate(v)
        assert penalty.value(w) + penalty.conjugate(v) == pytest.approx(v @ w, rel=1e-9, abs=1e-9)


@with_prox
@pytest.mark.parametrize("t", [1e-3, 0.3, 40.0])
def test_prox_minimises(penalty, t):
    rng = np.random.default_rng(2)
    for _ in range(30):
        x = rng.normal(size=D) * 2
        best = penalty.prox(x, t)
        value = penalty.value(best) + (best - x) @ (best - x) / (2 * t)
        assert np.isfinite(value)
        for scale in (1e-4, 1e-2, 1.0):
            other = domain_point(penalty, rng)
            other = best + min(scale, 1.0) * (other - best)
            assert penalty.value(other) + (other - x) @ (other - x) / (2 * t) >= value - 1e-9 * (1 + abs(value))


@with_prox
def test_moreau_decomposition_gives_a_subgradient(penalty):
    """(x - prox(x)) / t is a subgradient at the prox: Fenchel-Young holds with equality there."""
    rng = np.random.default_rng(3)
    for _ in range(50):
        x, t = rng.normal(size=D), float(np.exp(rng.normal()))
        w = penalty.prox(x, t)
        v = (x - w) / t
        if isinstance(penalty, NormPenalty):
            assert penalty.dual_norm(v) <= penalty.lam * (1 + 1e-9)
            assert penalty.value(w) == pytest.approx(v @ w, rel=1e-8, abs=1e-9)
        else:
            assert penalty.value(w) + penalty.conjugate(v) == pytest.approx(v @ w, rel=1e-7, abs=1e-7)


@every_penalty
def test_strong_convexity_holds(penalty):
    mu = penalty.strong_convexity
    rng = np.random.default_rng(4)
    for _ in range(200):
        a, b = domain_point(penalty, rng), domain_point(penalty, rng)
        middle = penalty.value((a + b) / 2)
        bound = (penalty.value(a) + penalty.value(b)) / 2 - mu / 8 * p_norm(a - b, penalty.norm) ** 2
        assert middle <= bound + 1e-12


@every_penalty
def test_conjugate_upper_bounds_the_conjugate_nearby(penalty):
    rng = np.random.default_rng(5)
    for _ in range(200):
        v = dual_point(penalty, rng)
        error = np.abs(rng.normal(size=D)) * 10.0 ** rng.uniform(-12, -2)
        upper = penalty.conjugate_upper(v, error)
        near = v + error * rng.choice([-1, 1], D)
        if isinstance(penalty, penalties.FusedL1):  # only differences orthogonal to the null space count
            basis = penalty.null_space(D).basis
            near -= basis @ np.linalg.lstsq(basis, near - v, rcond=None)[0]
            if np.any(np.abs(near - v) > error):
                continue
        assert upper >= penalty.conjugate(near)


@every_penalty
def test_subgradients_satisfy_fenchel_young_with_equality(penalty):
    rng = np.random.default_rng(6)
    for _ in range(20):
        w = domain_point(penalty, rng)
        if penalty.analysis is None and not isinstance(penalty, penalties.Entropy):
            w = penalty.prox(w, 1.0)
        set_ = penalty.subgradients(w, 0.0)
        v = set_.point.copy()
        if set_.directions is not None:
            low, high = np.maximum(set_.low, -1), np.minimum(set_.high, 1)
            u = low + rng.random(len(low)) * (high - low)
            if isinstance(penalty, penalties.GroupL2 | penalties.SparseGroup):
                u = u / 4  # the box stands for a ball
            v = v + set_.directions @ u
        if isinstance(penalty, NormPenalty):
            assert v @ w == pytest.approx(penalty.value(w), abs=1e-9)
            if penalty.analysis is None:
                assert penalty.dual_norm(v) <= penalty.lam * (1 + 1e-9)
        else:
            assert penalty.value(w) + penalty.conjugate(v) == pytest.approx(v @ w, abs=1e-7)


@pytest.mark.parametrize("p", [1.0, 1.0001, 1.5, 2.0, 7.0, 1e6, np.inf])
def test_p_norms_of_huge_and_tiny_entries(p):
    for scale in (1e-200, 1.0, 1e200):
        x = scale * np.array([3.0, -4.0, 0.0])
        assert p_norm(x, p) == pytest.approx(4 * scale * np.linalg.norm([0.75, 1.0], p), rel=1e-12)
    assert 1 / p + 1 / dual_exponent(p) == pytest.approx(1)


def test_lp_penalty_with_p_close_to_one():
    penalty = penalties.LpSquared(0.5, 1 + 1e-6)
    v = np.array([1.0, -0.999999, 0.3, 0.0])
    w = penalty.grad_conjugate(v)
    assert np.isfinite(w).all()
    assert penalty.value(w) + penalty.conjugate(v) == pytest.approx(v @ w, rel=1e-9)
    x = penalty.prox(v, 0.7)
    u = (v - x) / 0.7
    assert penalty.value(x) + penalty.conjugate(u) == pytest.approx(u @ x, rel=1e-6)


def test_entropy_at_the_boundary_of_the_simplex():
    penalty = penalties.Entropy(1e-3)
    assert penalty.value(np.array([1.0, 0.0, 0.0])) == 0.0
    assert penalty.value(np.array([0.7, 0.7])) == np.inf
    assert penalty.value(np.array([1.5, -0.5])) == np.inf
    assert penalty.conjugate(np.array([1e5, -1e5, 0.0])) == 1e5
    assert np.array_equal(penalty.grad_conjugate(np.array([1e5, -1e5, 0.0])), [1.0, 0.0, 0.0])


@pytest.mark.parametrize("d", [1, 2, 30])
@pytest.mark.parametrize("lam", [1e-150, 0.3, 1e150])
@pytest.mark.parametrize("radius", [1e-150, 2.0, 1e150])
def test_a_signed_entropy_is_that_of_its_splitting(d, lam, radius):
    """R is at most the relative entropy of any splitting; its values from R*, in extended numbers."""
    rng, penalty = np.random.default_rng(d), penalties.SignedEntropy(lam, radius)
    for size in (1e-9, 1e-3, 1.0, 20.0, 300.0):
        theta = size * rng.normal(size=d).astype(np.longdouble)
        total = np.cosh(theta).sum()
        w = np.sinh(theta) / total  # over the radius
        exact = float((theta * w).sum() - np.log1p(np.mean(2 * np.sinh(theta / 2) ** 2)))
        given = np.asarray(w, dtype=np.float64) * radius
        if np.sum(np.abs(given)) / radius < 1.0 - 1e-9:
            least = 1e-300 / (radius * lam)  # of what does not underflow
            assert penalty.value(given) / radius / lam == pytest.approx(exact, rel=1e-6, abs=max(least, 1e-25))
        assert penalty.value_upper(given) / radius / lam >= exact - 2e-16 * float((abs(theta) * abs(w)).sum())
        np.testing.assert_allclose(
            penalty.grad_conjugate(np.asarray(theta, dtype=np.float64) * lam), given, rtol=1e-11, atol=1e-14 * radius
        )
        other = rng.dirichlet(np.ones(2 * d))
        away = (other[:d] - other[d:]) * radius
        entropy = float(np.sum(other * np.log(2 * d * other)))
        assert penalty.value(away) / radius / lam <= entropy * (1 + 1e-12) + 1e-12


def test_a_signed_entropy_on_its_sphere():
    penalty = penalties.SignedEntropy(0.5, radius=3.0)
    w = np.array([1.0, -2.0, 0.0])
    exact = 0.5 * (2.0 * np.log(2.0) + 3.0 * np.log(2 * 3 / 3.0))
    assert penalty.value(w) == pytest.approx(exact, rel=1e-12)
    assert penalty.value(w * (1 - 1e-14)) == pytest.approx(exact, rel=1e-10)
    assert penalty.value(w * (1 - 1e-10)) == pytest.approx(exact, rel=1e-8)
    assert penalty.value(w * (1 + 1e-6)) == np.inf
    assert penalty.slack(w) > 0.0
    assert penalty.value(np.zeros(3)) == 0.0


@pytest.mark.parametrize("lam", [1e-12, 1e-3, 1.0, 1e12])
@pytest.mark.parametrize("t", [1e-12, 1.0, 1e12])
def test_the_prox_of_a_signed_entropy_at_any_scale(lam, t):
    rng, penalty = np.random.default_rng(0), penalties.SignedEntropy(lam, radius=2.0)
    for size in (1e-6, 1.0, 1e6):
        x = size * rng.normal(size=9)
        w = penalty.prox(x, t)
        assert np.sum(np.abs(w)) <= 2.0 * (1 + 1e-12)

        def objective(u, x=x):
            return penalty.value(u) + np.sum((u - x) ** 2) / (2 * t)

        best = objective(w)
        assert np.isfinite(best)
        for scale in (1e-6, 1e-3, 1.0):
            other = rng.normal(size=9)
            other = w + scale * (2.0 * rng.random() * other / np.abs(other).sum() - w)
            assert objective(other) >= best - 1e-9 * (abs(best) + lam)


def test_total_variation_prox_agrees_with_a_conic_solver():
    import cvxpy as cp

    rng = np.random.default_rng(7)
    for d in (2, 3, 10, 60):
        y, lam = rng.normal(size=d).cumsum(), 0.8
        x = cp.Variable(d)
        cp.Problem(cp.Minimize(cp.sum_squares(x - y) / 2 + lam * cp.norm1(cp.diff(x)))).solve(solver="CLARABEL")
        np.testing.assert_allclose(penalties.FusedL1(lam).prox(y, 1.0), x.value, atol=1e-5)


@pytest.mark.parametrize(
    "make",
    [
        lambda: penalties.L2(0.0),
        lambda: penalties.L1(-1.0),
        lambda: penalties.L1(np.nan),
        lambda: penalties.L2("a"),
        lambda: penalties.ElasticNet(1.0, 1.0),
        lambda: penalties.NonNegativeL1(0.0),
        lambda: penalties.NonNegativeElasticNet(1.0, 1.0),
        lambda: penalties.LpSquared(1.0, 1.0),
        lambda: penalties.LpSquared(1.0, 1.5, radius=-1),
        lambda: penalties.SignedEntropy(0.0, 1.0),
        lambda: penalties.SignedEntropy(1.0, radius=0.0),
        lambda: penalties.SignedEntropy(1e-300, radius=1e300),
        lambda: penalties.SignedEntropy(1e300, radius=1e300),
        lambda: penalties.GroupL2(1.0, [[0, 1], [1, 2]]),
        lambda: penalties.GroupL2(1.0, np.array([0.5, 1.0])),
        lambda: penalties.GroupL2(1.0, np.array([0, 1]), weights=[1.0]),
        lambda: penalties.GroupL2(1.0, np.array([0, 1]), weights=[1.0, 0.0]),
        lambda: penalties.SparseGroup(1.0, np.array([0, 1]), 0.0),
        lambda: penalties.SparseGroup(1.0, np.array([0, 1]), 1.0),
        lambda: penalties.SparseGroup(1.0, [[0, 1], [1, 2]]),
        lambda: penalties.FusedL1(1.0, D=np.array([[1.0, np.nan]])),
        lambda: penalties.FusedL1(1.0, D=np.ones(3)),
    ],
)
def test_bad_parameters_are_refused(make):
    with pytest.raises(ValueError, match=r"must|names|weights|not finite"):
        make()


@pytest.mark.parametrize("size", [1, 2, 7, 200])
def test_the_dual_norm_of_sparse_groups_is_never_too_small(size):
    """With t a little above it the group is inside its ball, with t a little below it is not: in exact arithmetic."""
    rng = np.random.default_rng(size)
    for _ in range(10):
        penalty = penalties.SparseGroup(
            1.0, np.zeros(size, dtype=int), float(rng.uniform(0.01, 0.99)), [10.0 ** rng.normal()]
        )
        v = rng.normal(size=size) * 10.0 ** rng.normal(size=size)
        t, ratio, weight = penalty.dual_norm(v), Q(penalty.l1_ratio), Q(float(penalty.weights[0]))

        def outside(t, v=v, ratio=ratio, weight=weight):
            return sum(max(Q(0), abs(Q(x)) - ratio * t) ** 2 for x in v) > ((1 - ratio) * weight * t) ** 2

        assert not outside(Q(t) * Q(1.0 + penalty.evaluation))
        assert outside(Q(t) * Q(1.0 - penalty.evaluation))
