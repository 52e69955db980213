"""certified_path: one of its models is proven eps-optimal at every lam."""

import re
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

import fenchel as fl
from fenchel.data import samples
from fenchel.problem.penalties import L1, L2, ElasticNet, GroupL2
from fenchel.solver.paths.certified import fixed_grid
from fenchel.solver.paths.intervals import Anchor
from tests.helpers.conic import reliable_optimum

RNG = np.random.default_rng(4)


def regression(penalty, loss=None, **options):
    sample = samples.make_regression(60, 12, rho=0.5, noise=0.5, random_state=1)
    return fl.Problem(sample.X, sample.y, loss or fl.losses.Squared(), penalty, **options)


def classification(penalty, loss, **options):
    sample = samples.make_classification(80, 10, noise=0.7, random_state=2)
    return fl.Problem(sample.X, sample.y, loss, penalty, **options)


GROUPS = np.repeat(np.arange(4), 3)
WEIGHTS = np.linspace(0.0, 2.0, 60)
CASES = {
    "lasso": regression(L1(1.0)),
    "lasso with an intercept and weights": regression(L1(1.0), intercept=True, sample_weight=WEIGHTS),
    "elastic net": regression(ElasticNet(1.0, 0.7), intercept=True),
    "group lasso": regression(GroupL2(1.0, GROUPS, np.sqrt([1.0, 2.0, 3.0, 4.0]))),
    "ridge": regression(L2(1.0), intercept=True),
    "sparse logistic": classification(L1(1.0), fl.losses.Logistic(), intercept=True),
    "huber": regression(L1(1.0), fl.losses.Huber(0.5), intercept=True),
    "svm": classification(L2(1.0), fl.losses.Hinge()),
}


def interval(problem, ratio=100.0):
    largest = problem.lam_max() if problem.penalty.sparsity else 1.0
    return largest / ratio, largest


def violations(problem, path, lams, truth):
    """Where a model of the path is worse, against any other model, than the path says it can be."""
    found = []
    for lam in lams:
        at_lam = problem.with_lam(float(lam))
        knot, gap = path.at(lam)
        assert knot.low <= lam <= knot.high
        objective = at_lam.primal(knot.w, knot.b)
        assert gap <= path.eps * objective * (1.0 + 1e-12)
        excess = objective - at_lam.primal(*truth(at_lam))
        if excess > gap:
            found.append((lam, excess, gap))
    return found


def solved(problem):
    result = fl.solve(problem, tol=1e-9, warn=False)
    return result.w, result.b


@pytest.mark.parametrize("name", CASES)
def test_no_lam_between_the_knots_violates_the_bound(name):
    problem = CASES[name]
    path = fl.certified_path(problem, *interval(problem), eps=1e-2)
    assert path.complete
    lams = np.geomspace(path.lam_min, path.lam_max, 200)[1:-1]
    assert not violations(problem, path, [*lams, path.lam_min, path.lam_max], solved)


@pytest.mark.parametrize("name", ["lasso", "group lasso", "sparse logistic"])
def test_a_conic_solver_finds_no_violation(name):
    problem = CASES[name]
    path = fl.certified_path(problem, *interval(problem, 30.0), eps=3e-3)
    lams = RNG.uniform(np.log(path.lam_min), np.log(path.lam_max), 12)
    assert not violations(problem, path, np.exp(lams), reliable_optimum)


def test_no_violation_on_bundled_data():
    sample = samples.load("diabetes", standardised=True)
    problem = fl.Problem(sample.X, sample.y, fl.losses.Squared(), L1(1.0), intercept=True)
    path = fl.certified_path(problem, *interval(problem, 1000.0), eps=1e-4)
    lams = np.geomspace(path.lam_min, path.lam_max, 200)
    assert not violations(problem, path, lams, solved)


def test_the_intervals_cover_everything_and_meet():
    path = fl.certified_path(CASES["lasso"], *interval(CASES["lasso"]), eps=1e-3)
    assert (path.knots[0].high, path.knots[-1].low) == (path.lam_max, path.lam_min)
    for above, below in pairwise(path.knots):
        assert above.low == below.high
        assert below.low < below.high
    assert all(anchor.proves(path.eps) for knot in path for anchor in knot.anchors)
    assert sum(knot.solved for knot in path) == path.n_solves


@pytest.mark.parametrize("name", ["lasso", "sparse logistic", "elastic net"])
def test_fewer_solves_than_a_fixed_grid_with_the_same_guarantee(name):
    problem = CASES[name]
    path = fl.certified_path(problem, *interval(problem), eps=3e-4)
    assert path.n_solves < fixed_grid(problem, *interval(problem), eps=3e-4)


def test_the_proof_fails_where_the_model_is_too_bad():
    assert Anchor(1.0, upper=1.0, lower=0.9901).proves(0.01)
    assert not Anchor(1.0, upper=1.0, lower=0.9899).proves(0.01)
    assert not Anchor(1.0, upper=1.0, lower=0.99).proves(0.01)  # rounding could hide the difference


def test_the_bounds_hold_in_rational_arithmetic():
    """P(w, b) = mean (x.w + b - y)^2 / 2 + lam |w|_1, and the chord of the lower bounds, without any rounding."""
    problem = CASES["lasso"]
    path = fl.certified_path(problem, *interval(problem, 10.0), eps=1e-2)
    X = [[Fraction(x) for x in row] for row in problem.design.matrix.tolist()]
    y = [Fraction(target) for target in problem.y.tolist()]
    for knot in path:
        w = [Fraction(x) for x in knot.w.tolist()]
        scores = (sum(a * b for a, b in zip(row, w, strict=True)) for row in X)
        loss = sum((z - t) ** 2 for z, t in zip(scores, y, strict=True)) / (2 * len(y))
        for left, right in pairwise(knot.anchors):
            for share in (Fraction(0), Fraction(1, 7), Fraction(1, 2), Fraction(1)):
                lam = (1 - share) * Fraction(left.lam) + share * Fraction(right.lam)
                objective = loss + lam * sum(map(abs, w))
                lower = (1 - share) * Fraction(left.lower) + share * Fraction(right.lower)
                assert (1 - Fraction(path.eps)) * objective <= lower
                at = min(max(float(lam), left.lam), right.lam)
                assert objective <= Fraction(knot.objective(at)) * (1 + Fraction(1, 10**14))
                assert objective - lower <= Fraction(knot.gap(at)) * (1 + Fraction(1, 10**9))


@pytest.mark.parametrize(
    "penalty", [fl.penalties.FusedL1(1.0), fl.penalties.LpSquared(1.0, 1.5), fl.penalties.Entropy(1.0)]
)
def test_every_penalty_that_is_proportional_to_lam_has_a_path(penalty):
    problem = regression(penalty)
    path = fl.certified_path(problem, 1e-2, 1e-1, eps=1e-2)
    assert path.complete
    assert not violations(problem, path, np.geomspace(1.001e-2, 0.999e-1, 20), solved)


def test_an_optimum_of_zero_has_no_relative_gap():
    sample = samples.make_regression(20, 3, random_state=0)
    problem = fl.Problem(sample.X, np.ones(20), fl.losses.Squared(), L1(1.0), intercept=True)
    with pytest.warns(fl.NotCertifiedWarning, match="proven for no lam"):
        path = fl.certified_path(problem, 0.1, 1.0)
    assert len(path) == 0
    assert not path.complete
    with pytest.raises(ValueError, match="no proven model to draw"):
        path.plot()


def test_a_negative_objective_is_proven_for_no_lam():
    """P - P* <= eps P cannot hold there; an entropy is negative."""
    sample = samples.make_regression(20, 3, random_state=0)
    problem = fl.Problem(sample.X, np.zeros(20), fl.losses.Squared(), fl.penalties.Entropy(1.0))
    with pytest.warns(fl.NotCertifiedWarning, match=r"proven for no lam: at lam = 100 the objective is -\d"):
        path = fl.certified_path(problem, 50.0, 100.0)
    assert len(path) == 0


def test_a_model_that_was_tampered_with_is_caught():
    """The brute force above can fail: a knot with another model's weights violates its bound."""
    problem = CASES["lasso"]
    path = fl.certified_path(problem, *interval(problem), eps=1e-3)
    first, last = path.knots[0], path.knots[-1]
    object.__setattr__(last, "w", first.w)
    with pytest.raises(AssertionError):
        assert not violations(problem, path, [last.low, last.high], solved)


def test_time_that_is_over_leaves_what_is_proven():
    problem = CASES["lasso"]
    low, high = interval(problem, 1e4)
    seen = []

    def stop(check):
        seen.append(check)
        if len(seen) > 3:
            raise KeyboardInterrupt

    with pytest.warns(fl.NotCertifiedWarning, match="interrupted"):
        path = fl.certified_path(problem, low, high, eps=1e-5, callback=stop, solver="fista")
    assert not path.complete
    assert low < path.low < high
    assert not violations(problem, path, np.geomspace(path.low, high, 20), solved)
    with pytest.raises(ValueError, match="proven from"):
        path.at(low)
    assert str(path).startswith("Incomplete")


def test_mistakes_are_said_before_any_work():
    problem = CASES["lasso"]
    for arguments, message in (
        ((0.1, 0.1), "below lam_max"),
        ((-1.0, 0.1), "lam_min must be a positive"),
        ((0.1, np.inf), "lam_max must be a positive"),
        ((0.1, 1.0, 1.5), "eps must be below 1"),
        ((0.1, 1.0, 0.0), "eps must be a positive"),
    ):
        with pytest.raises(ValueError, match=message):
            fl.certified_path(problem, *arguments)
    with pytest.raises(TypeError, match="has no option tol"):
        fl.certified_path(problem, 0.1, 1.0, tol=1e-3)
    with pytest.raises(TypeError, match=re.escape("fenchel.Problem")):
        fl.certified_path(None, 0.1, 1.0)


def test_penalties_that_are_not_proportional_to_lam_are_refused():
    class Shifted(L2):
        def value(self, w):
            return super().value(w) + 1.0

    sample = samples.make_regression(20, 3, random_state=0)
    problem = fl.Problem(sample.X, sample.y, fl.losses.Squared(), Shifted(1.0))
    with pytest.raises(TypeError, match="not proportional to lam"):
        fl.certified_path(problem, 0.1, 1.0)


def test_eps_beyond_double_precision_ends_with_a_warning():
    with pytest.warns(fl.NotCertifiedWarning, match="reached a relative gap of only"):
        path = fl.certified_path(CASES["lasso"], *interval(CASES["lasso"]), eps=1e-15)
    assert not path.complete


def test_the_picture_has_the_weights_and_the_band():
    path = fl.certified_path(CASES["lasso"], *interval(CASES["lasso"]), eps=1e-2)
    above, below = path.plot(title="a path").axes
    assert above.get_title() == "a path"
    assert below.collections
    band = below.lines[0].get_ydata()
    assert 0.0 < band.max() <= path.eps


def test_a_path_without_models_says_so():
    problem = CASES["lasso"]
    low, high = interval(problem, 10.0)
    with pytest.warns(fl.NotCertifiedWarning):
        path = fl.certified_path(problem, low, high, eps=1e-3, max_seconds=1e-9)
    assert not len(path)
    assert str(path).startswith("Nothing is proven")
    assert path.coefs.size == 0
    with pytest.raises(ValueError, match="nothing is proven"):
        path.at(low)
