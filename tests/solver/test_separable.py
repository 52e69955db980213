"""separable: proven answers for one labeling and for many, of every shape and storage."""

import warnings

import numpy as np
import pytest

import fenchel as fl
from fenchel.solver import separability
from fenchel.steps.interpolation.separation import Basis, Separation, best_step
from tests.matrix.statements import SHAPES, STORAGES, for_every_storage

rng = np.random.default_rng(0)


def test_overlapping_intervals_are_not_separable_and_others_are():
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    assert fl.separable(X, [0, 0, 1, 1]).answer is True
    found = fl.separable(X, [0, 1, 0, 1])
    assert found.answer is False
    assert found.verify(X, [0, 1, 0, 1])
    assert not found.verify(X, [0, 0, 1, 1])


def test_a_design_is_decided_and_verified_as_its_matrix_is():
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    for y in ([0, 0, 1, 1], [0, 1, 0, 1]):
        assert fl.separable(fl.Design(X), y).verify(fl.Design(X), y)
    with pytest.raises(ValueError, match="without a constant column"):
        fl.separable(X, y).verify(fl.Design(X, constant=1.0), y)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("intercept", [False, True])
def test_equal_samples_with_different_labels_are_not_separable(storage, intercept):
    points = rng.normal(size=(30, 10))
    X, y = STORAGES[storage](np.vstack([points, points[:6]])), np.r_[points[:, 0] > 0, points[:6, 0] <= 0]
    found = fl.separable(X, y, intercept=intercept)
    assert found.answer is False
    assert found.verify(X, y)
    assert np.count_nonzero(found.multipliers) == 2


def test_without_an_intercept_the_hyperplane_goes_through_zero():
    X, y = np.array([[1.0], [2.0]]), [0, 1]
    assert fl.separable(X, y).answer is True
    assert fl.separable(X, y, intercept=False).answer is False


def test_a_separating_model_is_returned_and_verified():
    X = rng.normal(size=(50, 30))
    y = rng.choice(["no", "yes"], size=50)
    found = fl.separable(X, y)
    assert found.answer is True
    assert np.all((X @ found.w + found.b > 0) == (y == "yes"))
    assert found.verify(X, y)
    assert not found.verify(X, y[::-1])
    assert 0.0 < found.margin.best <= found.margin.upper


def test_labelings_share_the_points():
    X = rng.normal(size=(24, 10))
    Y = rng.choice([0, 1], size=(24, 60))
    together = fl.separable(X, Y)
    assert [one.answer for one in together] == [fl.separable(X, column).answer for column in Y.T]
    assert {one.answer for one in together} == {True, False}
    assert all(one.verify(X, column) for one, column in zip(together, Y.T, strict=True))


def test_the_share_of_separable_labelings_is_that_of_cover():
    """2 sum_{k < d} binom(n - 1, k) of the 2^n labelings of points in general position, without an intercept."""
    X = rng.normal(size=(6, 3))
    Y = np.array([[1 if code >> i & 1 else -1 for code in range(64)] for i in range(6)])
    answers = [one.answer for one in fl.separable(X, Y, intercept=False)]
    assert sum(answers) == 2 * (1 + 5 + 10)


def test_a_margin_below_a_ten_thousandth_is_found():
    """The squared hinge and hard margins end without one; a linear program finds it."""
    rng = np.random.default_rng(0)
    points, labelings = rng.normal(size=(40, 20)), rng.choice([-1, 1], size=(40, 200))
    found = fl.separable(points, labelings[:, 52], intercept=False)
    assert found.answer
    assert found.margin.best > 2e-5
    assert found.verify(points, labelings[:, 52])


def test_one_label_is_separable_by_an_intercept():
    X = np.array([[1.0], [-1.0], [0.0]])
    Y = np.array([[1, 1], [1, 1], [1, -1]])
    first, second = fl.separable(X, Y)
    assert first.answer is True
    assert first.verify(X, [1, 1, 1])
    assert second.answer is False
    first, second = fl.separable(X, Y, intercept=False)
    assert first.answer is False


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("intercept", [False, True])
@for_every_storage
def test_every_shape_and_storage(shape, intercept, storage):
    n, d = SHAPES[shape]
    X = rng.normal(size=(n, d)).astype(np.float32).astype(np.float64)
    labelings = rng.choice([-1.0, 1.0], size=(n, 8))
    plain = fl.separable(X, labelings, intercept=intercept)
    found = fl.separable(STORAGES[storage](X), labelings, intercept=intercept)
    assert [one.answer for one in found] == [one.answer for one in plain]
    assert all(one.answer is not None for one in found)
    assert all(one.verify(X, y) for one, y in zip(found, labelings.T, strict=True))


@pytest.mark.parametrize("power", [-150, 0, 140])
def test_features_may_have_any_scale(power):
    X = rng.normal(size=(30, 10)) * 10.0**power
    Y = rng.choice([-1.0, 1.0], size=(30, 10))
    unscaled = [one.answer for one in fl.separable(X * 10.0**-power, Y)]
    assert [one.answer for one in fl.separable(X, Y)] == unscaled


def test_columns_of_zeros_and_repeated_columns():
    X = rng.normal(size=(40, 10))
    wide = np.hstack([X, X[:, :3], np.zeros((40, 2)), -2.0 * X[:, :1]])
    for seed in range(6):
        y = np.random.default_rng(seed).choice([-1, 1], size=40)
        answer = fl.separable(X, y).answer
        assert fl.separable(wide, y).answer is answer
        assert answer is not None


def test_the_same_point_with_both_labels_is_a_contradiction():
    X = np.vstack([rng.normal(size=(20, 30)), np.zeros((2, 30))])
    X[-1] = X[0]
    y = np.append(rng.choice([-1, 1], size=20), [1, -1])
    y[0] = 1
    found = fl.separable(X, y)
    assert found.answer is False
    assert found.verify(X, y)


def test_a_point_on_the_boundary_is_not_separated():
    """Quasi-separation: y_i z_i >= 0 for some classifier, but never > 0 for all samples."""
    X = np.array([[0.0, 1.0], [0.0, -1.0], [1.0, 0.0], [-1.0, 0.0], [0.0, 0.5], [0.0, -0.5]])
    y = np.array([1, 1, 1, -1, -1, -1])
    found = fl.separable(X, y)
    assert found.answer is False
    assert found.verify(X, y)


def test_several_classes_need_the_highest_score_everywhere():
    X = 3.0 * np.eye(3)[np.arange(12) % 3] + 0.2 * rng.normal(size=(12, 3))
    found = fl.separable(X, np.arange(12) % 3)
    assert found.answer is True
    assert np.all((X @ found.w.T + found.b).argmax(axis=1) == np.arange(12) % 3)
    assert found.verify(X, np.arange(12) % 3)
    overlapping = fl.separable(rng.normal(size=(40, 2)), np.arange(40) % 3)
    assert overlapping.answer is False


def test_memory_maps_are_read_in_place(tmp_path):
    stored = np.lib.format.open_memmap(tmp_path / "X.npy", mode="w+", dtype=np.float64, shape=(60, 20))
    stored[:] = rng.normal(size=(60, 20))
    y = rng.choice([-1, 1], size=60)
    found = fl.separable(np.load(tmp_path / "X.npy", mmap_mode="r"), y)
    assert found.answer is fl.separable(np.array(stored), y).answer


def test_data_too_large_for_a_basis_go_to_the_solver_of_hard_margins(monkeypatch):
    monkeypatch.setattr(Basis, "fits", staticmethod(lambda n, columns: False))
    X = rng.normal(size=(60, 20))
    y = np.sign(X[:, 0])
    found = fl.separable(X, y)
    assert found.answer is True
    assert found.verify(X, y)
    crossed = fl.separable(X, rng.choice([-1.0, 1.0], size=60))
    assert crossed.answer is not True


def test_time_that_is_over_leaves_labelings_undecided(clock):
    X = rng.normal(size=(30, 10))
    found = fl.separable(X, rng.choice([-1, 1], size=(30, 50)), max_seconds=0.05)
    assert found[-1].answer is None
    assert not found[-1].verify(X, rng.choice([-1, 1], size=30))
    assert "Not decided" in str(found[-1])


def test_an_interrupt_leaves_the_rest_undecided(monkeypatch):
    decided, decide = [], separability._Decider.decide

    def interrupted(self, judge):
        decided.append(judge)
        if len(decided) == 3:
            raise KeyboardInterrupt
        return decide(self, judge)

    monkeypatch.setattr(separability._Decider, "decide", interrupted)
    found = fl.separable(rng.normal(size=(10, 8)), rng.choice([-1, 1], size=(10, 5)))
    assert [one.answer is None for one in found] == [False, False, True, True, True]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: fl.separable(np.eye(3), [1, 1, 1]), ValueError, "one class only"),
        (lambda: fl.separable(np.eye(3), [1, -1]), ValueError, "2 entries"),
        (lambda: fl.separable(np.eye(3), np.ones((2, 2))), ValueError, "2 rows"),
        (lambda: fl.separable(np.eye(3), np.arange(6).reshape(3, 2)), ValueError, "two labels at most"),
        (lambda: fl.separable(np.eye(3), [1, -1, 1], intercept="yes"), TypeError, "intercept"),
        (lambda: fl.separable([[np.nan]], [1]), ValueError, "finite"),
        (lambda: fl.separable(np.eye(2), [1, -1]).verify(np.eye(2), [1, 2]), ValueError, "none of"),
    ],
)
def test_errors_say_what_is_wrong(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_the_best_step_minimises_along_the_line():
    for _ in range(50):
        m, a = rng.normal(size=9), rng.normal(size=9) * (rng.random(9) < 0.8)
        a = a if a @ np.maximum(m, 0.0) > 0.0 else -a
        t = best_step(m, a)
        f = [np.sum(np.maximum(m - s * a, 0.0) ** 2) for s in (t, 0.999 * t, 1.001 * t, 0.0)]
        assert f[0] <= min(f) + 1e-12


def test_steps_end_for_random_labels_at_the_capacity():
    X = rng.normal(size=(80, 40))
    basis = Basis.of(fl.Design(X), intercept=False)
    np.testing.assert_allclose(basis.Q.T @ basis.Q, np.eye(40), atol=1e-8)
    for _ in range(20):
        steps = Separation.of(rng.choice([-1.0, 1.0], size=80)[:, None] * basis.Q)
        while not steps.ended:
            steps.step()
        assert steps.steps < 50


@pytest.mark.slow
@pytest.mark.parametrize("n", [1200, 1500, 1800])
def test_random_labels_of_800_features(n):
    points = np.random.default_rng(0)
    X, y = points.normal(size=(n, 800)), points.choice([-1.0, 1.0], size=n)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = fl.separable(X, y)
    assert found.answer is (n < 1800)
    assert found.verify(X, y)


def test_columns_whose_squares_underflow_are_decided():
    X = [[1e-170, 1.0], [-1e-170, 1.0], [1e-170, -1.0], [-1e-170, -1.0]]
    found = fl.separable(X, [1, 1, -1, 1], intercept=False)
    assert found.answer is False
    assert found.verify(X, [1, 1, -1, 1])


@pytest.mark.parametrize("dtype", [str, object])
def test_columns_of_labels_may_be_text(dtype):
    Z, labels = [[0.0], [1.0], [2.0]], np.array([["a", "b", "a"], ["b", "b", "a"], ["a", "b", "b"]], dtype=dtype)
    found = fl.separable(Z, labels)
    assert [each.answer for each in found] == [False, True, True]
    assert all(each.verify(Z, column) for each, column in zip(found, labels.T, strict=True))
    with pytest.raises(ValueError, match="two labels at most"):
        fl.separable(Z, np.array([["a", "a"], ["b", "b"], ["c", "a"]], dtype=dtype))
