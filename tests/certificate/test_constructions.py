"""Both constructions of section 5.2, side by side: each is a valid bound, and rescaling is never the worse one."""

import numpy as np
import pytest

import fenchel as fl
from tests.helpers.conic import reliable_optimum
from tests.helpers.registry import targets

NORMS = [
    fl.penalties.L1(0.1),
    fl.penalties.GroupL2(0.1, np.arange(6) // 2, weights=np.array([1.0, 2.0, 0.5])),
    fl.penalties.FusedL1(0.1),
]


def problem_of(loss, penalty, seed=0, **options):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 6))
    return fl.Problem(X, targets(loss, rng, 40), loss, penalty, **options)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", [fl.losses.Squared(), fl.losses.Logistic(), fl.losses.Huber(0.5)], ids=repr)
@pytest.mark.parametrize("penalty", NORMS, ids=lambda p: type(p).__name__)
def test_both_constructions_bound_the_optimum_from_any_model(penalty, loss, intercept):
    problem = problem_of(loss, penalty, intercept=intercept)
    best_w, best_b = reliable_optimum(problem)
    best = problem.primal(best_w, best_b)
    rng = np.random.default_rng(1)
    for share in (0.0, 0.9, 0.999, 1.0):
        w = share * best_w + (1.0 - share) * rng.normal(size=6)
        found = fl.certify(problem, w, best_b).constructions()
        assert list(found) == ["rescaling", "Lipschitzing"]
        for construction in found.values():
            assert construction.dual <= best * (1.0 + 1e-9)
            assert construction.gap >= problem.primal(w, best_b) - best
            assert construction.relative_gap == pytest.approx(construction.gap / problem.primal(w, best_b))


@pytest.mark.parametrize("loss", [fl.losses.Squared(), fl.losses.Logistic(), fl.losses.SquaredHinge()], ids=repr)
@pytest.mark.parametrize("penalty", NORMS[:2], ids=lambda p: type(p).__name__)
def test_rescaling_is_never_the_worse_one(penalty, loss):
    """The proof is in `certificate.constructions`."""
    better = 0
    for seed in range(20):
        problem = problem_of(loss, penalty, seed)
        for size in (1e-3, 0.1, 10.0):
            found = fl.certify(problem, size * np.random.default_rng(seed).normal(size=6), effort="low").constructions()
            assert found["rescaling"].gap <= found["Lipschitzing"].gap * (1.0 + 1e-9)
            better += found["rescaling"].gap < 0.9 * found["Lipschitzing"].gap
    assert better > 10


@pytest.mark.parametrize("effort", ["low", "auto"])
@pytest.mark.parametrize("penalty", [*NORMS, fl.penalties.L2(0.1), fl.penalties.ElasticNet(0.1)], ids=repr)
def test_the_certificate_is_at_least_as_good_as_each(penalty, effort):
    problem = problem_of(fl.losses.Logistic(), penalty)
    c = fl.certify(problem, np.full(6, 0.1), effort=effort)
    for construction in c.constructions().values():
        assert c.gap <= construction.gap * (1.0 + 1e-12)


def test_the_elastic_net_has_its_own_gap():
    """Section 5.2.3: <w, A a> + sum_j (|A_j.w| - l1)+^2 / (2 l2) + R(a), with w the gradient of the loss."""
    problem = problem_of(fl.losses.Squared(), fl.penalties.ElasticNet(0.3, 0.4))
    w = np.random.default_rng(2).normal(size=6)
    X, penalty = problem.design.matrix, problem.penalty
    slope = (X @ w - problem.y) / 40
    excess = np.maximum(np.abs(X.T @ slope) - penalty.l1, 0.0)
    printed = slope @ X @ w + excess @ excess / (2 * penalty.l2) + penalty.value(w)
    (found,) = fl.certify(problem, w).constructions().items()
    assert found[0] == "conjugate"
    assert found[1].gap == pytest.approx(printed, rel=1e-12)


def test_the_lasso_has_the_gap_of_equation_18():
    problem = problem_of(fl.losses.Squared(), fl.penalties.L1(0.05))
    w = 0.1 * np.random.default_rng(2).normal(size=6)
    slope = (problem.scores(w) - problem.y) / 40
    assert problem.primal(np.zeros(6)) < problem.primal(w)
    B = problem.primal(np.zeros(6)) / 0.05
    norm = np.abs(problem.design.rmatvec(slope)).max()
    printed = slope @ problem.scores(w) + B * max(0.0, norm - 0.05) + problem.penalty.value(w)
    assert fl.certify(problem, w).constructions()["Lipschitzing"].gap == pytest.approx(printed, rel=2e-12)


def test_it_is_asked_of_one_problem_with_its_data():
    problem = problem_of(fl.losses.Squared(), fl.penalties.L1(0.05))
    c = fl.certify(problem, np.zeros(6))
    with pytest.raises(ValueError, match="each of its parts"):
        fl.Certificate.combined([c, c]).constructions()
    with pytest.raises(ValueError, match="only its numbers"):
        fl.Certificate.from_json(c.to_json()).constructions()


def test_a_dual_norm_that_overflows_proves_nothing():
    X = np.array([[1.7e308, 0.0], [1e308, 0.1]])
    problem = fl.Problem(X, np.array([1.0, -1.0]), fl.losses.Squared(), fl.penalties.GroupL2(1.0, [0, 0]))
    for found in fl.certify(problem, np.zeros(2)).constructions().values():
        assert found.dual <= problem.primal(np.array([0.7 / 3.89 * 1e-308, 0.0]))
