"""Laws that every loss of k scores obeys."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from fenchel.problem import losses
from fenchel.problem.losses.multiclass import multipliers, off_of, probabilities
from tests.helpers.registry import MULTICLASS, name

every_loss = pytest.mark.parametrize("loss", MULTICLASS, ids=name)
seeds = st.integers(0, 10_000)


def draw(seed, n=40):
    """Random classes, scores of every size, blocks from the middle, the edges and the corners of the simplex."""
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 9))
    y = rng.integers(k, size=n)
    Z = rng.normal(size=(n, k)) * np.exp(1.5 * rng.normal(size=(n, 1)))
    p = rng.dirichlet(np.full(k, 0.5), size=n)
    p[: n // 4] = np.eye(k)[rng.integers(k, size=n // 4)]
    q = np.exp(3 * rng.normal(size=n))
    return y, Z, p, q


def blocks(p, y):
    """alpha = e_y - p, with rows that add up to zero."""
    off = p.copy()
    off[np.arange(len(p)), y] = 0.0
    return multipliers(off / np.maximum(off.sum(axis=1, keepdims=True), 1.0), y)


def test_every_exported_multiclass_loss_is_in_the_registry():
    kinds = {getattr(losses, n) for n in losses.__all__}
    assert {type(loss) for loss in MULTICLASS} == {
        kind for kind in kinds if issubclass(kind, losses.MulticlassLoss) and kind is not losses.MulticlassLoss
    }


@every_loss
@settings(max_examples=40)
@given(seed=seeds)
def test_fenchel_young_inequality(loss, seed):
    y, Z, p, _ = draw(seed)
    alpha = blocks(p, y)
    value, conjugate = loss.value(Z, y), loss.conjugate(-alpha, y)
    product = (alpha * Z).sum(axis=1)
    assert np.isfinite(conjugate).all()
    assert (value + conjugate + product >= -1e-12 * (1 + value + np.abs(Z).max(axis=1))).all()


@every_loss
@settings(max_examples=40)
@given(seed=seeds)
def test_fenchel_young_equality_at_the_gradient(loss, seed):
    y, Z, _, _ = draw(seed)
    U = loss.gradient(Z, y)
    value = loss.value(Z, y)
    size = 1 + value + np.abs(Z).max(axis=1)
    assert np.allclose((value + loss.conjugate(U, y) - (U * Z).sum(axis=1)) / size, 0.0, atol=1e-12)


@every_loss
@pytest.mark.parametrize("seed", range(5))
def test_conjugate_by_brute_force(loss, seed):
    y, Z, p, _ = draw(seed, n=6)
    alpha = blocks(p, y)
    for i in range(6):

        def gain(z, i=i):
            return float(-alpha[i] @ z - loss.value(z[None], y[i : i + 1])[0])

        starts = [
            np.zeros(Z.shape[1]),
            Z[i],
            np.log(np.maximum(p[i], 1e-9)),
            np.where(np.arange(len(p[i])) == y[i], 1, 0),
        ]
        found = [
            minimize(lambda z: -gain(z), start, method="Nelder-Mead", options={"maxiter": 4000}) for start in starts
        ]
        conjugate = loss.conjugate(-alpha[i : i + 1], y[i : i + 1])[0]
        best = max(-r.fun for r in found)
        assert best <= conjugate + 1e-9
        assert best >= conjugate - 2e-2


@every_loss
def test_conjugate_is_infinite_outside_the_domain(loss):
    y = np.array([1])
    inside = np.array([[-0.2, 0.5, -0.3]])
    assert np.isfinite(loss.conjugate(-inside, y)).all()
    for outside in ([[-0.6, 1.1, -0.5]], [[0.2, 0.1, -0.3]], [[-0.2, 0.6, -0.3]]):
        assert np.isposinf(loss.conjugate(-np.array(outside), y)).all()


@every_loss
@settings(max_examples=40)
@given(seed=seeds)
def test_dual_step_maximises(loss, seed):
    y, Z, p, q = draw(seed)
    alpha = blocks(p, y)

    def gain(other):
        change = other - alpha
        return -loss.conjugate(-other, y) - (Z * change).sum(axis=1) - q * (change**2).sum(axis=1) / 2

    best = gain(loss.dual_step(alpha, Z, q, y))
    noise = 1e-11 * (1 + np.abs(Z).max(axis=1) + q)
    rng = np.random.default_rng(seed)
    step = loss.dual_step(alpha, Z, q, y)
    for share in (1.0, 0.1, 1e-2, 1e-4):
        towards = blocks(rng.dirichlet(np.full(Z.shape[1], 0.3), size=len(y)), y)
        assert (best >= gain(multipliers(off_of((1 - share) * step + share * towards, y), y)) - noise).all()
    assert (best >= gain(alpha) - noise).all()


@every_loss
@settings(max_examples=40)
@given(seed=seeds)
def test_compiled_and_numpy_steps_agree(loss, seed):
    y, Z, p, q = draw(seed, n=200)
    q[:3] = 0.0, 1e-300, 1e8
    compiled, numpy = loss.kernel().dual_step(p, Z, q, y), loss.block_step(p, Z, q, y)
    np.testing.assert_allclose(compiled, numpy, rtol=1e-10, atol=1e-11)
    assert np.allclose(compiled.sum(axis=1), 1.0, rtol=1e-14)
    assert (compiled >= 0).all()


@every_loss
@settings(max_examples=40)
@given(seed=seeds)
def test_the_smoothness_holds(loss, seed):
    y, Z, _, _ = draw(seed)
    other = Z + np.random.default_rng(seed + 1).normal(size=Z.shape)
    change = np.linalg.norm(loss.gradient(Z, y) - loss.gradient(other, y), axis=1)
    assert (change <= loss.smoothness * np.linalg.norm(Z - other, axis=1) + 1e-12).all()


def test_multinomial_is_safe_at_extreme_scores():
    loss, y = losses.Multinomial(), np.array([0, 0, 0])
    Z = np.array([[1e4, 0.0, -1e4], [-1e4, 0.0, 1e4], [0.0, -800.0, -900.0]])
    with np.errstate(all="raise", under="ignore", divide="ignore"):
        assert np.allclose(loss.value(Z, y), [0.0, 2e4, 0.0])
        assert np.allclose(loss.off_class(Z, y), [[0, 0, 0], [0, 0, 1], [0, 0, 0]])
    p = probabilities(loss.off_class(Z, y), y)
    assert np.all(loss.dual_value(loss.off_class(Z, y)) >= 0)
    assert np.allclose(p.sum(axis=1), 1.0)


def test_softmax_of_two_classes_is_the_logistic_loss():
    z = np.linspace(-30, 30, 101)
    y = np.array([1.0, -1.0])[np.arange(101) % 2]
    Z, codes = np.column_stack([-z / 2, z / 2]), (y > 0).astype(int)
    assert np.allclose(losses.Multinomial().value(Z, codes), losses.Logistic().value(z, y), rtol=1e-13)
    assert np.allclose(losses.CrammerSinger().value(Z, codes), losses.Hinge().value(z, y), rtol=1e-13)
