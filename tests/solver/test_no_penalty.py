"""Problems without a penalty: certificates, ranks, and samples that a classifier separates."""

import numpy as np
import pytest
import scipy.sparse as sp

import fenchel as fl
from fenchel import losses
from fenchel.problem.penalties import NoPenalty
from tests.helpers.conic import multiclass_optimum, reliable_optimum
from tests.helpers.registry import LOSSES, REGRESSION, name, targets

NOT_ATTAINED = [losses.Logistic(), losses.Exponential()]


def free(X, y, loss=None, weights=None, intercept=True):
    return fl.Problem(X, y, loss or losses.Squared(), NoPenalty(), weights, intercept)


def minimum_norm(X, y, s):
    """Of least squares with an intercept, by centred columns."""
    p = s / s.sum()
    root = np.sqrt(p)[:, None]
    return np.linalg.lstsq(root * (X - p @ X), root[:, 0] * (y - p @ y), rcond=None)[0]


@pytest.mark.parametrize("storage", [np.asarray, np.asfortranarray, sp.csr_array, sp.csc_array])
@pytest.mark.parametrize(("n", "d"), [(40, 6), (7, 6), (6, 6), (6, 20), (1, 3)])
@pytest.mark.parametrize("weighted", [False, True])
def test_least_squares_have_minimum_norm(n, d, weighted, storage):
    rng = np.random.default_rng([n, d])
    X, y = rng.normal(size=(n, d)) + 3.0, rng.normal(size=n)
    s = rng.random(n) + 0.1 if weighted else np.ones(n)
    result = fl.solve(free(storage(X), y, weights=s), tol=1e-9)
    assert result.status == "certified"
    assert result.solver == "least_squares"
    np.testing.assert_allclose(result.w, minimum_norm(X, y, s), atol=1e-9)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", LOSSES, ids=name)
def test_every_loss_is_certified_and_agrees_with_a_conic_solver(loss, intercept):
    rng = np.random.default_rng(LOSSES.index(loss))
    X, y = rng.normal(size=(60, 4)) * 10.0 ** np.arange(-2, 2) + 1.0, targets(loss, rng, 60)
    problem = free(X, y, loss, rng.random(60), intercept)
    result = fl.solve(problem, tol=1e-8)
    best = problem.primal(*reliable_optimum(problem))
    assert result.status == "certified"
    assert result.certificate.gap >= result.certificate.primal - best
    assert result.certificate.primal <= best * (1.0 + 1e-6)


@pytest.mark.parametrize("loss", LOSSES, ids=name)
def test_columns_that_depend_on_others_exactly_leave_out_nothing(loss):
    """Twice the same, zeros, and the columns of a factor that add up to those of ones."""
    rng = np.random.default_rng(3)
    groups = np.eye(3)[rng.integers(3, size=60)]
    X = np.column_stack([groups, rng.normal(size=60), np.zeros(60)])
    X = np.column_stack([X, -2.0 * X[:, 3]])
    y = targets(loss, rng, 60)
    result = fl.solve(free(X, y, loss), tol=1e-5)
    alone = fl.solve(free(X[:, 1:4], y, loss), tol=1e-5)
    assert result.status == "certified"
    assert result.certificate.primal == pytest.approx(alone.certificate.primal, rel=3e-5)


def test_columns_that_depend_on_others_up_to_rounding_have_no_certificate():
    """With them the residuals may be smaller, by weights of the size of 1e16: the warning says why."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(500, 3))
    X = np.column_stack([A, A @ rng.normal(size=(3, 2))])
    y = rng.normal(size=500)
    with pytest.warns(fl.NotCertifiedWarning, match="depend on each other up to rounding"):
        result = fl.solve(free(X, y))
    np.testing.assert_allclose(result.w, minimum_norm(X, y, np.ones(500)), atol=1e-8)
    assert result.certificate.gap >= result.certificate.primal


@pytest.mark.parametrize("loss", REGRESSION, ids=name)
def test_more_weights_than_samples_fit_them_all(loss):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(8, 30)), rng.normal(size=8)
    result = fl.solve(free(X, y, loss))
    assert result.status == "certified"
    assert result.certificate.primal <= 1e-12
    assert result.certificate.vanishes


@pytest.mark.parametrize("loss", [loss for loss in LOSSES if loss.is_classification], ids=name)
@pytest.mark.parametrize("weighted", [False, True])
def test_samples_that_a_classifier_separates(loss, weighted):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(50, 3))
    y = np.where(X[:, 0] + 0.3 > 0.0, 1.0, -1.0)
    s = np.ones(50)
    if weighted:  # samples without a weight may be on the wrong side
        y[:5], s[:5] = -y[:5], 0.0
    problem = free(X, y, loss, s)
    if loss not in NOT_ATTAINED:
        result = fl.solve(problem)
        assert result.status == "certified"
        assert result.certificate.primal <= 1e-12
        return
    with pytest.warns(fl.NotCertifiedWarning, match="no minimiser exists"):
        result = fl.solve(problem, tol=1e-4)
    assert result.status == "separated"
    assert result.certificate.ok
    assert result.certificate.primal <= result.certificate.atol <= 1e-4 * problem.loss_at_zero
    counted = s > 0.0
    assert np.all((y * problem.scores(result.w, result.b))[counted] > 0.0)
    margin = fl.margin_interval((result.w, result.b), X[counted], y[counted])
    assert 0.0 < margin.lower <= result.margin.upper
    assert result.margin.best >= 0.99 * margin.best


def test_an_infimum_that_is_not_attained_is_certified():
    """A column that is 1 for some positives only: its weight goes to infinity."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    y = np.where(X[:, 0] + rng.normal(size=80) > 0.0, 1.0, -1.0)
    X[:, 2] = (np.arange(80) % 5 == 0) & (y > 0.0)
    left = X[:, 2] == 0.0
    result = fl.solve(free(X, y, losses.Logistic()), tol=1e-6)
    rest = fl.solve(free(X[left, :2], y[left], losses.Logistic()), tol=1e-9)
    assert result.status == "certified"
    infimum = rest.certificate.primal * left.mean()
    assert result.certificate.primal - result.certificate.gap <= infimum
    assert result.certificate.primal == pytest.approx(infimum, rel=1e-5)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("doubled", [False, True])
def test_several_scores_are_certified_and_agree_with_a_conic_solver(intercept, doubled):
    rng = np.random.default_rng(4)
    X, y, s = rng.normal(size=(70, 3)), rng.integers(3, size=70), rng.random(70)
    wide = np.column_stack([X, X[:, :1]]) if doubled else X
    problem = fl.MulticlassProblem(wide, y, losses.Multinomial(), NoPenalty(), s, intercept)
    result = fl.solve(problem, tol=1e-8)
    best = problem.primal(*multiclass_optimum(problem))
    assert result.status == "certified"
    assert result.certificate.gap >= result.certificate.primal - best
    for distance in (0.0, 1e-6, 1e-2, 1.0):
        w = result.w + distance * rng.normal(size=result.w.shape)
        c = fl.certify(problem, w, result.b)
        assert c.gap >= problem.primal(w, result.b) - best
        assert distance > 1e-3 or c.relative_gap <= 1e-5


def test_several_classes_that_are_separated():
    rng = np.random.default_rng(5)
    X = np.array([[0.0, 4.0], [4.0, 0.0], [-4.0, -4.0]])[np.arange(60) % 3] + 0.3 * rng.normal(size=(60, 2))
    problem = fl.MulticlassProblem(X, np.arange(60) % 3, losses.Multinomial(), NoPenalty(), intercept=True)
    with pytest.warns(fl.NotCertifiedWarning, match="the largest margin is between"):
        result = fl.solve(problem)
    assert result.status == "separated"
    assert result.certificate.ok


def test_the_construction_of_the_bound_has_a_name():
    rng = np.random.default_rng(6)
    certificate = fl.solve(free(rng.normal(size=(40, 3)), rng.normal(size=40), losses.Huber(0.5))).certificate
    found = certificate.constructions()
    assert list(found) == ["conjugate"]
    assert found["conjugate"].relative_gap <= 1e-4
    assert not certificate.zeros().any()


def test_a_problem_without_a_penalty_has_no_path():
    with pytest.raises(TypeError, match="NoPenalty has no lam"):
        free(np.eye(2), np.ones(2)).with_lam(1.0)


def test_rows_of_mixed_scale_end_soon_though_nothing_is_proven():
    """Steps by which the objective hardly falls, in which no multipliers become feasible, are not gone on with."""
    rows = [[-1.3e-3, 2.6e-3], [4.8e-2, 6.4e-2], [-2.1e-2, 5.8e-3], [3.4e9, 2e9], [-6.1e8, 6.1e8], [4.9e-3, -1.2e-3]]
    problem = fl.Problem(rows, [-1.0, 1, -1, 1, -1, 1], fl.losses.Logistic(), fl.penalties.NoPenalty(), intercept=True)
    with pytest.warns(fl.NotCertifiedWarning):
        result = fl.solve(problem, solver="free_newton", tol=1e-2)
    assert result.n_iter < 1000
