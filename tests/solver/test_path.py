"""path: a grid of lam, warm starts, screening, certificates for the whole problem."""

import numpy as np
import pytest
import scipy.sparse as sp

import fenchel as fl
from fenchel.data import samples
from fenchel.problem.penalties import L1, L2, ElasticNet, GroupL2
from fenchel.solver.paths import screening
from fenchel.solver.solve import solve_request
from tests.helpers.conic import reliable_optimum


def wide(penalty, loss=None, **options):
    make = samples.make_classification if loss is not None and loss.is_classification else samples.make_regression
    sample = make(40, 120, informative=6, noise=0.3, random_state=3)
    return fl.Problem(sample.X, sample.y, loss or fl.losses.Squared(), penalty, **options)


GROUPS = np.repeat(np.arange(40), 3)
WEIGHTS = np.linspace(0.0, 2.0, 40)
CASES = {
    "lasso": wide(L1(1.0)),
    "lasso with an intercept and weights": wide(L1(1.0), intercept=True, sample_weight=WEIGHTS),
    "elastic net": wide(ElasticNet(1.0, 0.8), intercept=True),
    "group lasso": wide(GroupL2(1.0, GROUPS, np.linspace(1.0, 2.0, 40)), intercept=True, sample_weight=WEIGHTS),
    "sparse logistic": wide(L1(1.0), fl.losses.Logistic(), intercept=True),
}


@pytest.mark.parametrize("name", CASES)
def test_weights_are_zero_from_lam_max_and_not_below(name):
    problem = CASES[name]
    largest = problem.lam_max()
    at, above, below = (fl.solve(problem.with_lam(f * largest), tol=1e-10, warn=False) for f in (1.0, 1.001, 0.98))
    assert np.abs(at.w).max() < 1e-4 * np.abs(below.w).max()
    assert not above.w.any()
    assert below.w.any()


@pytest.mark.parametrize("name", CASES)
def test_every_certificate_is_for_the_whole_problem(name):
    problem = CASES[name]
    path = fl.path(problem, eps=0.05, n_lams=12, tol=1e-6)
    assert len(path) == 12
    assert path.lams[0] == problem.lam_max()
    assert np.all(np.diff(path.lams) < 0)
    for lam, result in zip(path.lams, path, strict=True):
        own = fl.certify(problem.with_lam(lam), result.w, result.b, alpha=result.alpha)
        assert result.certificate.ok
        assert result.certificate.primal == pytest.approx(own.primal, rel=1e-12)
        assert own.relative_gap <= 1.01e-6
    assert path.coefs.shape == (120, 12)
    assert np.abs(path.coefs[:, 0]).max() < 1e-6 * np.abs(path.coefs).max()


@pytest.mark.parametrize("name", ["lasso", "group lasso"])
def test_a_conic_solver_finds_nothing_below_the_certificates(name):
    problem = CASES[name]
    path = fl.path(problem, eps=0.1, n_lams=5, tol=1e-5)
    for lam, result in zip(path.lams, path, strict=True):
        at_lam = problem.with_lam(lam)
        assert result.certificate.primal - at_lam.primal(*reliable_optimum(at_lam)) <= result.certificate.gap


@pytest.mark.parametrize("storage", [np.ascontiguousarray, np.asfortranarray, sp.csr_array, sp.csc_array])
def test_screening_leaves_columns_out_and_changes_no_verdict(storage, monkeypatch):
    problem = CASES["lasso with an intercept and weights"]
    problem = problem.replace(X=fl.Design(storage(problem.design.matrix)))
    widths = []

    def watched(statement, *rest):
        widths.append(statement.shape[1])
        return solve_request(statement, *rest)

    monkeypatch.setattr(screening, "solve_request", watched)
    screened = fl.path(problem, eps=0.1, n_lams=20, tol=1e-8, solver="fista")
    assert min(widths) < 60
    plain = fl.path(problem, eps=0.1, n_lams=20, tol=1e-8, screen=False)
    for one, other in zip(screened, plain, strict=True):
        assert one.certificate.ok
        assert one.certificate.primal == pytest.approx(other.certificate.primal, rel=2e-8)


def test_the_constant_column_is_screened_as_every_other():
    sample = samples.make_regression(40, 120, informative=3, random_state=3)
    for constant in (1e-3, 10.0):
        problem = fl.Problem(fl.Design(sample.X, constant=constant), sample.y + 2.0, fl.losses.Squared(), L1(1.0))
        path = fl.path(problem, eps=0.1, n_lams=8, tol=1e-7)
        assert all(certificate.ok for certificate in path.certificates)
        assert bool(path.coefs[-1].any()) is (constant == 10.0)


def test_warm_starts_need_fewer_steps():
    problem = CASES["elastic net"]
    options = {"solver": "fista", "tol": 1e-4, "check_every": 1}
    path = fl.path(problem, eps=0.05, n_lams=100, **options)
    cold = sum(fl.solve(problem.with_lam(lam), **options).n_iter for lam in path.lams)
    assert sum(result.n_iter for result in path) < cold


def test_given_lams_come_back_sorted_and_penalties_without_lam_max_need_them():
    sample = samples.make_regression(30, 5, random_state=0)
    ridge = fl.Problem(sample.X, sample.y, fl.losses.Squared(), L2(1.0))
    assert fl.path(ridge, lams=[0.1, 1.0, 0.5]).lams.tolist() == [1.0, 0.5, 0.1]
    with pytest.raises(TypeError, match=r"no lam_max.*pass lams"):
        fl.path(ridge)
    constant = fl.Problem(sample.X, np.ones(30), fl.losses.Squared(), L1(1.0), intercept=True)
    with pytest.raises(ValueError, match="optimal for every lam"):
        fl.path(constant)


def test_mistakes_are_said_before_any_work():
    problem = CASES["lasso"]
    for options, message in (
        ({"lams": [1.0, -1.0]}, "positive"),
        ({"lams": []}, "at least one"),
        ({"lams": [1.0, np.nan]}, "lams has nan"),
        ({"lams": [1.0], "n_lams": 5}, "n_lams is for the default grid"),
        ({"eps": 2.0}, "eps must lie"),
        ({"n_lams": 0}, "n_lams must be"),
    ):
        with pytest.raises(ValueError, match=message):
            fl.path(problem, **options)
    with pytest.raises(TypeError, match="no option 'start'"):
        fl.path(problem, start=(1, 2, 3))
    with pytest.raises(TypeError, match="screen must be True or False"):
        fl.path(problem, screen="yes")


def test_an_interrupted_path_has_what_was_found():
    seen = []

    def stop(check):
        seen.append(check)
        if len(seen) > 5:
            raise KeyboardInterrupt

    with pytest.warns(fl.NotCertifiedWarning, match="of 50 lams were reached"):
        path = fl.path(CASES["lasso"], n_lams=50, tol=1e-8, callback=stop, solver="fista")
    assert 0 < len(path) < 50
    assert all(np.isfinite(certificate.gap) for certificate in path.certificates)


def test_it_prints_as_a_table_and_draws_the_weights():
    path = fl.path(CASES["lasso"], eps=0.1, n_lams=6)
    lines = str(path).splitlines()
    assert lines[0].split() == ["lam", "objective", "proven", "within", "nonzeros", "steps"]
    assert len(lines) == 7
    assert len(str(fl.path(CASES["lasso"], eps=0.1, n_lams=30)).splitlines()) == 22
    axes = path.plot(title="six")
    assert axes.get_title() == "six"
    assert len(axes.lines) > 2


@pytest.mark.parametrize("penalty", [L1(0.3), ElasticNet(0.3, 0.6), GroupL2(0.3, GROUPS, np.linspace(1.0, 2.0, 40))])
def test_a_restricted_penalty_is_the_same_where_the_others_are_zero(penalty):
    rng = np.random.default_rng(0)
    w, keep = rng.normal(size=120), np.repeat(rng.random(40) < 0.4, 3)
    w[~keep] = 0.0
    part = penalty.restricted(keep)
    assert part.value(w[keep]) == pytest.approx(penalty.value(w), rel=1e-14)
    assert np.allclose(part.prox(w[keep], 0.5), penalty.prox(w, 0.5)[keep], rtol=1e-14, atol=0)


def test_another_lam_shares_the_checked_design():
    problem = CASES["lasso"]
    other = problem.with_lam(0.25)
    assert other.penalty == L1(0.25)
    assert other.design is problem.design
    assert problem.penalty == L1(1.0)
    with pytest.raises(ValueError, match="lam must be a positive"):
        problem.with_lam(-1.0)


@pytest.mark.parametrize(("given", "meant"), [({"lam": [1.0]}, "lams"), ({"n_lam": 3}, "n_lams"), ({"ep": 0.1}, "eps")])
def test_a_misspelt_option_is_named(given, meant):
    rng = np.random.default_rng(0)
    for penalty in (fl.penalties.L1(1.0), fl.penalties.L2(1.0)):
        problem = fl.Problem(rng.normal(size=(20, 3)), rng.normal(size=20), fl.losses.Squared(), penalty)
        with pytest.raises(TypeError, match=f"{next(iter(given))!r}; did you mean {meant}"):
            fl.path(problem, **given)
