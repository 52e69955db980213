"""What "auto" chooses, and what `explain` says about it."""

import importlib

import numpy as np
import pytest
import scipy.sparse as sp

import fenchel as fl
from tests.helpers.registry import LOSSES, MULTICLASS, SMOOTH, name, penalties_for, targets
from tests.steps.test_newton import separable


def test_auto_is_newton_where_narrow_and_sdca_where_wide():
    X, y = separable(500, 5)
    many, signs = separable(6000, 5)
    wide, labels = separable(200, 3000, density=0.01)
    L2 = fl.penalties.L2(1e-3)
    assert fl.solve(fl.Problem(X, y, fl.losses.Logistic(), L2)).solver == "newton"
    assert fl.solve(fl.Problem(wide, labels, fl.losses.Logistic(), L2)).solver == "sdca"
    assert fl.solve(fl.Problem(X, y, fl.losses.Hinge(), fl.penalties.L2(10.0))).solver == "newton"
    assert fl.solve(fl.Problem(many, signs, fl.losses.Hinge(), fl.penalties.L2(10.0))).solver == "sdca"
    assert fl.solve(fl.Problem(many, signs, fl.losses.Hinge(), fl.penalties.L2(1e-6))).solver == "newton"
    assert fl.solve(fl.Problem(np.asfortranarray(X), y, fl.losses.Logistic(), L2)).solver == "fista"
    assert fl.solve(fl.Problem(X, y, fl.losses.Logistic(), fl.penalties.L1(1e-2))).solver == "primal_cd"


@pytest.mark.parametrize(
    ("loss", "intercept", "lam", "solver"),
    [
        (fl.losses.Squared(), True, 1e-4, "newton"),  # no momentum helps a free intercept
        (fl.losses.Squared(), False, 1e-2, "sdca"),
        (fl.losses.Logistic(), True, 1e-5, "newton"),
        (fl.losses.SquaredHinge(), True, 1e-4, "sdca"),  # curvatures come and go where samples are few
    ],
    ids=name,
)
def test_auto_is_newton_where_wide_and_dual_ascent_takes_very_long(loss, intercept, lam, solver):
    X, y = separable(1500, 1200, density=0.02)
    result = fl.solve(fl.Problem(X, y, loss, fl.penalties.L2(lam), intercept=intercept))
    assert (result.solver, result.certificate.ok) == (solver, True)


@pytest.mark.parametrize(
    ("intercept", "lam", "solver"), [(True, 1e-4, "newton"), (False, 1e-4, "sdca"), (True, 1e-1, "sdca")]
)
def test_auto_is_newton_where_tall_and_an_intercept_makes_dual_ascent_slow(intercept, lam, solver):
    X, y = separable(4000, 1200, density=0.02)
    problem = fl.Problem(X, y, fl.losses.SquaredHinge(), fl.penalties.L2(lam), intercept=intercept)
    result = fl.solve(problem)
    assert (result.solver, result.certificate.ok) == (solver, True)


@pytest.mark.parametrize(
    ("loss", "tol", "intercept", "solver"),
    [
        (fl.losses.Logistic(), 1e-3, False, "sdca"),  # a Hessian of 500 dense columns is expensive
        (fl.losses.Logistic(), 1e-3, True, "newton"),
        (fl.losses.Squared(), 1e-3, False, "newton"),
        (fl.losses.SquaredHinge(), 1e-6, False, "newton"),
    ],
    ids=name,
)
def test_auto_is_sdca_where_momentum_beats_dense_hessians(loss, tol, intercept, solver):
    X = np.random.default_rng(0).normal(size=(6000, 500)) / 10.0
    problem = fl.Problem(X, np.sign(X[:, 0]), loss, fl.penalties.L2(1e-3), intercept=intercept)
    for threads in (1, 2):
        result = fl.solve(problem, tol=tol, n_threads=threads)
        assert (result.solver, result.certificate.ok) == (solver, True)


SHAPES = {"tall": (40, 5), "square": (12, 12), "wide": (15, 60), "one sample": (1, 4), "one column": (20, 1)}
STORAGES = {"C": np.ascontiguousarray, "F": np.asfortranarray, "CSR": sp.csr_array, "CSC": sp.csc_array}


def explained(loss, penalty, shape, storage="C", intercept=False):
    """A problem, or None where no solver takes the two."""
    n, d = SHAPES[shape]
    n = max(n, 2) if loss.is_classification else n  # both classes
    rng = np.random.default_rng([n, d])
    y = targets(loss, rng, n)
    problem = fl.Problem(STORAGES[storage](rng.normal(size=(n, d))), y, loss, penalty, intercept=intercept)
    try:
        fl.explain(problem)
    except TypeError:
        with pytest.raises(TypeError, match="no solver takes"):
            fl.solve(problem)
        return None
    return problem


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("loss", LOSSES, ids=name)
def test_explain_names_the_solver_that_solve_reports(loss, shape, monkeypatch):
    """Where it gives up, the result names the one that went on from there: another that could, too."""
    table, ran, module = set(), [], importlib.import_module("fenchel.solver.solve")
    run = module.run

    def recorded(fit, carried):
        if isinstance(fit.problem, fl.Problem):  # not the largest margin of what an unpenalised loss separates
            ran.append(carried.solver.name)
        return run(fit, carried)

    monkeypatch.setattr(module, "run", recorded)
    n, d = SHAPES[shape]
    for k, penalty in enumerate(penalties_for(d)):
        if d == 1 and isinstance(penalty, fl.penalties.FusedL1) and penalty.D is None:
            continue  # it has no first difference
        storage, intercept = list(STORAGES)[k % len(STORAGES)], bool(k % 2) and n > 1
        problem = explained(loss, penalty, shape, storage, intercept)
        if problem is None:
            continue
        said = fl.explain(problem, tol=1e-3)
        ran.clear()
        result = fl.solve(problem, tol=1e-3, max_iter=10, warn=False)
        assert said.solver == ran[0], (penalty, storage, intercept)
        assert result.solver == ran[-1]
        assert len(ran) == 1 or not said.reasons[ran[1]].startswith("cannot")
        assert said.reasons[said.solver].startswith("taken: ")
        assert f"-> {said.solver}" in " ".join(str(said).split())
        table.add(said.solver)
    assert table


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("shape", ["tall", "wide"])
@pytest.mark.parametrize("loss", SMOOTH, ids=name)
def test_explain_names_the_solver_of_a_path(loss, shape, storage):
    d = SHAPES[shape][1]
    for penalty in (
        fl.penalties.L1(1.0),
        fl.penalties.ElasticNet(1.0, 0.7),
        fl.penalties.GroupL2(1.0, np.arange(d) // 2),
    ):
        problem = explained(loss, penalty, shape, storage, intercept=True)
        said = fl.explain(problem, path=True)
        assert {result.solver for result in fl.path(problem, n_lams=4, eps=0.2)} == {said.solver}


def test_explain_distinguishes_paths_from_single_solves():
    """The compiled path is taken for more samples where many lams share what it sets up."""
    X = np.random.default_rng(0).normal(size=(501, 520))
    problem = fl.Problem(X, X[:, 0], fl.losses.Squared(), fl.penalties.L1(0.3))
    assert fl.explain(problem).solver == fl.solve(problem).solver == "primal_cd"
    assert fl.explain(problem, path=True).solver == "sparse_path"
    assert {result.solver for result in fl.path(problem, n_lams=3, eps=0.5)} == {"sparse_path"}


@pytest.mark.parametrize("loss", MULTICLASS, ids=name)
@pytest.mark.parametrize("intercept", [False, True])
def test_explain_several_classes(loss, intercept):
    X = np.random.default_rng(0).normal(size=(60, 4))
    problem = fl.MulticlassProblem(X, np.arange(60) % 3, loss, fl.penalties.L2(0.1), intercept=intercept)
    assert fl.explain(problem).solver == fl.solve(problem).solver


def test_explain_says_why_not_the_others():
    X = np.random.default_rng(0).normal(size=(30, 4))
    said = fl.explain(fl.Problem(X, X[:, 0], fl.losses.Squared(), fl.penalties.L1(0.1)))
    assert said.solver == "primal_cd"
    assert said.reasons["sparse_path"] == "cannot: it needs as many columns as samples, at least"
    assert said.reasons["newton"].startswith("cannot: it needs ")
    assert said.reasons["pdhg"] == "would do, after the one that is taken"
    assert "sgd" not in said.reasons  # baselines are taken by name only


def test_explain_refuses_what_is_no_problem():
    with pytest.raises(TypeError, match=r"problem must be a fenchel\.Problem, got str"):
        fl.explain("lasso")
    X = np.ones((4, 2))
    with pytest.raises(ValueError, match="tol must be a number >= 0"):
        fl.explain(fl.Problem(X, np.ones(4), fl.losses.Squared(), fl.penalties.L1(0.1)), tol=-1.0)
