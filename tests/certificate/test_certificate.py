"""The certificate: its numbers, its words, its consequences."""

import pickle
import re
import reprlib

import numpy as np
import pytest
import scipy.sparse as sp

import fenchel as fl
from fenchel.certificate import CertificateError
from fenchel.certificate.certificate import Certificate
from fenchel.certificate.interpolation.certificate import InterpolationCertificate
from tests.helpers.registry import LOSSES, name, penalties_for, targets

rng = np.random.default_rng(0)


def classification(n=80, d=5, loss=None, penalty=None, **kwargs):
    X = rng.normal(size=(n, d))
    y = np.where(X @ np.arange(1, d + 1) + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)
    return fl.Problem(X, y, loss or fl.losses.Logistic(), penalty or fl.penalties.L2(0.01), **kwargs)


def test_the_numbers_fit_together():
    problem = classification()
    c = fl.certify(problem, np.zeros(5))
    assert c.primal == pytest.approx(problem.primal(np.zeros(5)), rel=1e-15)
    assert c.gap == pytest.approx(c.primal - c.dual + c.rounding, rel=1e-12)
    assert c.relative_gap == c.gap / c.primal
    assert not c.ok
    solved = fl.solve(problem, tol=1e-9).certificate
    assert solved.ok
    assert solved.relative_gap <= 1e-9
    assert 0 < solved.rounding < 1e-9


def test_a_negative_gap_is_an_error_not_a_zero():
    with pytest.raises(CertificateError, match="negative beyond its rounding"):
        Certificate(1.0, 2.0, -1.0, -1.0, 1e-15, 1e-4, "gradient", np.inf)


def test_given_multipliers_are_used():
    problem = classification(loss=fl.losses.Hinge())
    best = fl.solve(problem, tol=1e-8)
    with_alpha = fl.certify(problem, best.w, alpha=best.alpha, effort="low")
    assert with_alpha.relative_gap <= 2e-8
    assert with_alpha.how.startswith("given")
    assert fl.certify(problem, best.w, effort="low").relative_gap > 1e-4


def test_more_effort_is_never_worse():
    problem = classification(loss=fl.losses.Hinge(), penalty=fl.penalties.L1(0.02))
    w = rng.normal(size=5)
    gaps = [fl.certify(problem, w, effort=effort).gap for effort in ("low", "auto", "high")]
    assert gaps[0] >= gaps[1] >= gaps[2]


def test_it_reads_as_a_sentence():
    c = fl.solve(classification(), tol=1e-6).certificate
    assert str(c).startswith("Certified: no model lowers the objective by more than a relative")
    assert "no model has less than" in str(c)
    assert "<div" in c._repr_html_()
    assert str(fl.certify(classification(), np.ones(5), tol=1e-12)).startswith("Not certified to tolerance")


def test_it_goes_through_json_and_pickle():
    c = fl.solve(classification(), tol=1e-6).certificate
    again = Certificate.from_json(c.to_json())
    assert again == c
    assert again.ok
    infinite = fl.certify(classification(penalty=fl.penalties.Entropy(0.1)), np.ones(5))
    assert infinite.gap == np.inf
    assert Certificate.from_json(infinite.to_json()) == infinite
    light = pickle.loads(pickle.dumps(c))
    assert light == c
    with pytest.raises(ValueError, match="certify the model again"):
        light.zeros()
    for text in ("{}", "[1]", "no json", '{"format": "other"}'):
        with pytest.raises(ValueError, match="not a certificate"):
            Certificate.from_json(text)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"w": np.ones(4)}, "w must be a vector of 5 weights"),
        ({"w": np.array([1, 2, np.nan, 0, 0])}, "w has nan at position 2"),
        ({"w": np.array(list("abcde"))}, "w must be numbers"),
        ({"w": np.ones(5), "b": 1.0}, "no intercept"),
        ({"w": np.ones((1, 5))}, r"got shape \(1, 5\); pass w\.ravel\(\)"),
        ({"w": np.ones(5), "b": np.float64(np.inf)}, "b must be one finite number, got inf$"),
        ({"w": np.ones(5), "b": np.ones(2)}, r"b must be one finite number, got an array of shape \(2,\)"),
        ({"w": np.ones(5), "alpha": np.ones(3)}, "alpha has 3 entries"),
        ({"w": np.ones(5), "effort": "max"}, "effort must be one of"),
        ({"w": np.ones(5), "tol": -1.0}, "tol must be positive"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        fl.certify(classification(), **arguments)


def test_an_intercept_may_be_an_array_of_one_number():
    """scikit-learn's `intercept_` is one."""
    problem = fl.Problem(np.ones((4, 1)), [1.0, 2.0, 3.0, 5.0], intercept=True)
    for b in (np.array([0.1]), np.array(0.1), np.float64(0.1), np.float32(0.5)):
        assert fl.certify(problem, [1.0], b=b).gap == fl.certify(problem, [1.0], b=float(np.ravel(b)[0])).gap


# Consequences ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", [fl.losses.Logistic(), fl.losses.Hinge(), fl.losses.SquaredHinge()], ids=name)
def test_proven_labels_are_those_of_the_optimum(loss, intercept):
    problem = classification(loss=loss, intercept=intercept)
    best = fl.solve(problem, tol=1e-10)
    new = rng.normal(size=(500, 5))
    truth = np.where(new @ best.w + best.b >= 0, 1, -1)
    unproven = []
    for noise in (0.3, 1e-2, 1e-4, 1e-6):
        rough = best.w + noise * rng.normal(size=5)
        labels, proven = fl.certify(problem, rough, best.b + noise * intercept * rng.normal()).labels(new)
        assert np.array_equal(labels[proven], truth[proven])
        unproven.append(1.0 - proven.mean())
    assert unproven[-2] < 0.2
    assert unproven[-1] < 0.02
    distance = np.linalg.norm(best.w - rough)
    assert distance <= fl.certify(problem, rough, best.b).weights_radius + best.certificate.weights_radius


@pytest.mark.parametrize(
    "penalty", [lambda lam, d: fl.penalties.L1(lam), lambda lam, d: fl.penalties.GroupL2(lam, np.arange(d) // 2)]
)
@pytest.mark.parametrize("loss", [fl.losses.Squared(), fl.losses.Logistic()], ids=name)
def test_proven_zeros_are_zero_in_the_optimum(loss, penalty):
    n, d = 60, 30
    X = rng.normal(size=(n, d))
    y = targets(loss, rng, n)
    problem = fl.Problem(X, y, loss, penalty(1.0, d), rng.random(n), intercept=True)
    problem = problem.replace(penalty=problem.penalty.with_lam(0.6 * problem.lam_max()))
    best = fl.solve(problem, tol=1e-10)
    proven = best.certificate.zeros()
    assert np.array_equal(proven, best.w == 0.0)
    assert proven.any()
    rough = fl.certify(problem, best.w + 1e-3 * rng.normal(size=d), best.b)
    assert not best.w[rough.zeros()].any()


def test_proven_support_vectors_agree_with_the_optimum():
    problem = classification(loss=fl.losses.Hinge(), intercept=True)
    best = fl.solve(problem, tol=1e-10)
    never, always = best.certificate.support_vectors()
    margin = problem.y * problem.scores(best.w, best.b)
    assert np.array_equal(never | always, np.abs(margin - 1.0) > 1e-6)  # all but those on the margin
    assert np.all(margin[never] > 1)
    assert np.all(margin[always] < 1)
    low, high = best.certificate.multipliers()
    assert np.all(low <= high)
    assert np.all((low - 1e-6 <= best.alpha) & (best.alpha <= high + 1e-6))


def test_consequences_explain_themselves_where_they_do_not_apply():
    regression = fl.solve(fl.Problem(rng.normal(size=(20, 3)), rng.normal(size=20))).certificate
    with pytest.raises(TypeError, match="for classification"):
        regression.labels(np.ones((1, 3)))
    c = fl.certify(classification(), np.zeros(5))
    with pytest.raises(ValueError, match="X has 4 columns"):
        c.labels(np.ones((2, 4)))
    assert not c.zeros().any()
    l1 = classification(loss=fl.losses.Hinge(), penalty=fl.penalties.L1(0.01))
    assert fl.certify(l1, np.zeros(5)).weights_radius == np.inf
    assert not fl.certify(l1, np.ones(5)).labels(np.ones((3, 5)))[1].any()


# Extremes -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("effort", ["low", pytest.param("auto", marks=pytest.mark.slow)])
@pytest.mark.parametrize("loss", LOSSES, ids=name)
def test_extreme_scales_never_give_a_wrong_number(loss, effort):
    n, d = 24, 4
    X, y = rng.normal(size=(n, d)), targets(loss, rng, n)
    for scale in (1e-150, 1e-100, 1e-30, 1.0, 1e30, 1e100, 1e150):
        for lam in (1e-12, 1e-10, 1.0, 1e10, 1e12):
            for penalty in penalties_for(d, lam):
                intercept = bool(rng.integers(2))
                problem = fl.Problem(scale * X, y, loss, penalty, intercept=intercept)
                points = [np.zeros(d), rng.normal(size=d) / scale, rng.normal(size=d)]
                if isinstance(penalty, fl.penalties.Entropy):
                    points = [rng.dirichlet(np.ones(d))]
                certificates = [fl.certify(problem, w, effort=effort) for w in points]
                assert not np.isnan([(c.primal, c.dual, c.gap, c.rounding) for c in certificates]).any()
                # every lower bound must lie below every upper bound
                best = min(c.primal for c in certificates)
                for c in certificates:
                    assert c.gap >= (c.primal - best) * (1 - 1e-12) or c.gap == np.inf


@pytest.mark.parametrize("loss", LOSSES, ids=name)
def test_degenerate_shapes_are_certified(loss):
    for n, d in ((2, 1), (2, 5), (30, 2)):
        X, y = rng.normal(size=(n, d)), targets(loss, rng, n)
        X[0] = 0.0
        X[:, -1] = 0.0
        X[-1] = X[1]
        for penalty in penalties_for(d, 0.1):
            if d == 1 and isinstance(penalty, fl.penalties.FusedL1) and penalty.D is None:
                continue
            for intercept in (False, True):
                problem = fl.Problem(sp.csr_array(X), y, loss, penalty, intercept=intercept)
                w = np.full(d, 1.0 / d) if isinstance(penalty, fl.penalties.Entropy) else np.full(d, 0.01)
                c = fl.certify(problem, w)
                assert 0 <= c.gap < np.inf


def test_a_single_sample_is_certified():
    problem = fl.Problem([[2.0]], [1.0], fl.losses.Squared(), fl.penalties.L2(1.0))
    c = fl.certify(problem, np.array([0.4]))
    assert c.primal == pytest.approx(0.1)
    assert c.gap <= 1e-12  # rounding alone, by the formula


def test_float32_data_are_certified_in_float64():
    problem = classification()
    single = fl.Problem(problem.design.matrix.astype(np.float32), problem.y, problem.loss, problem.penalty)
    c = fl.solve(single, tol=1e-10).certificate
    assert c.ok
    wide = fl.Problem(
        problem.design.matrix.astype(np.float32).astype(np.float64), problem.y, problem.loss, problem.penalty
    )
    assert fl.certify(wide, c.evidence.w).primal == pytest.approx(c.primal, rel=1e-14)


def test_separable_data_with_a_free_intercept_are_no_trap():
    """One weight, separable: the optimum of the exponential loss is finite only through the penalty."""
    problem = fl.Problem(
        [[1.0], [2.0], [-1.0]], [1, 1, -1], fl.losses.Logistic(), fl.penalties.L1(1e-6), intercept=True
    )
    c = fl.certify(problem, np.array([5.0]), 0.0)
    assert np.isfinite(c.gap)
    better = problem.primal(np.array([12.0]), -1.0)
    assert c.gap >= c.primal - better


# Promises
# --------------------------------------------------------------------------------------------------------------


def test_printed_bounds_are_rounded_outwards():
    from fenchel.certificate.certificate import percent, rounded_down

    assert percent(1.441e-4) == "0.015 %"
    assert percent(0.2341) == "24 %"
    assert percent(1.0) == "100 %"
    assert percent(np.inf) == "inf %"
    assert rounded_down(1.23456789099) == "1.23456789"
    assert rounded_down(-1.5e-11) == "-1.5e-11"
    for x in 10.0 ** rng.uniform(-12, 3, 200):
        assert float(percent(x)[:-2]) >= 100 * x
        assert float(rounded_down(x)) <= x


def test_notebooks_are_safe_from_files():
    numbers = fl.certify(classification(), np.zeros(5)).to_json().replace('"gradient"', '"<script>alert(1)</script>"')
    assert "<script>" not in Certificate.from_json(numbers)._repr_html_()


def test_an_absolute_tolerance_counts():
    result = fl.solve(classification(), tol=0.0, atol=1e-3)
    assert result.status == "certified"
    assert result.certificate.ok
    assert "or atol 0.001" in str(result.certificate)
    assert Certificate.from_json(result.certificate.to_json()).ok


def test_a_problem_keeps_its_own_targets_and_weights():
    X, y, s = rng.normal(size=(20, 3)), rng.normal(size=20), np.ones(20)
    problem = fl.Problem(X, y, sample_weight=s)
    before = problem.primal(np.ones(3))
    y *= 2
    s *= np.arange(20)
    assert problem.primal(np.ones(3)) == before
    with pytest.raises(ValueError, match="read-only"):
        problem.y[0] = 1.0


def test_memory_beyond_the_data_grows_with_n_plus_d_only():
    import tracemalloc

    n, d = 200, 20_000
    X = sp.random(n, d, density=0.002, random_state=0, format="csr")
    y = targets(fl.losses.Hinge(), rng, n)
    for loss in (fl.losses.Hinge(), fl.losses.Logistic()):
        for penalty in (fl.penalties.L2(0.1), fl.penalties.L1(0.001), fl.penalties.ElasticNet(0.01, 0.5)):
            problem = fl.Problem(X, y, loss, penalty, intercept=True)
            tracemalloc.start()
            fl.certify(problem, 0.01 * rng.normal(size=d))
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert peak < 80 * 8 * (n + d)  # one dense copy is 200 vectors of d numbers


def test_a_users_penalty_without_subgradients_is_certified_with_kinks_too():
    from tests.solver.test_solve import NonNegativeL2

    problem = classification(loss=fl.losses.Hinge(), penalty=NonNegativeL2(0.01))
    assert fl.solve(problem, tol=1e-6).certificate.ok
    assert np.isfinite(fl.certify(problem, np.ones(5)).gap)


def test_a_penalty_without_bounded_level_sets_is_refused_at_once():
    class Ramp(fl.penalties.Penalty):
        lam = 1.0

        def value(self, w):
            return float(np.maximum(w, 0).sum())

        def conjugate(self, v):
            return 0.0

        def prox(self, w, t):
            return w

    with pytest.raises(
        TypeError, match=r"neither strongly convex nor a norm \(a NormPenalty\), and has no level_radius"
    ):
        classification(penalty=Ramp())


def test_a_graph_in_many_pieces_is_refused():
    D = np.zeros((1, 200))
    D[0, :2] = -1.0, 1.0
    with pytest.raises(ValueError, match="null space of D has 199"):
        fl.Problem(rng.normal(size=(30, 200)), rng.normal(size=30), penalty=fl.penalties.FusedL1(0.1, D))


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.longdouble, np.int64])
def test_parameters_of_any_number_type_are_double_precision(kind):
    """NumPy would go on in single precision with a float32 lam, and certify 1e-16 where the truth is 1e-9."""
    X = rng.normal(size=(200, 5))
    y = X @ rng.normal(size=5) + rng.normal(size=200)
    lam = kind(1) if kind is np.int64 else kind(0.1)
    for penalty in (fl.penalties.L2(lam), fl.penalties.L1(lam), fl.penalties.ElasticNet(lam, np.float32(0.3))):
        assert all(type(value) is float for value in vars(penalty).values())
        problem = fl.Problem(X, y, fl.losses.Huber(np.float32(1.5)), penalty)
        best = fl.solve(problem, tol=1e-11)
        for _ in range(5):
            w = best.w * (1 + 1e-4 * rng.normal(size=5))
            assert fl.certify(problem, w).gap >= problem.primal(w) - best.certificate.primal


def test_a_users_single_precision_parameter_is_refused():
    from tests.solver.test_solve import NonNegativeL2

    with pytest.raises(TypeError, match=r"NonNegativeL2\.lam is a float32; pass float\(lam\)"):
        classification(penalty=NonNegativeL2(np.float32(0.1)))


def test_overflow_in_a_dual_norm_is_not_feasibility():
    n = 20
    y = np.tile([1.0, -1.0], n // 2)
    X = np.column_stack([np.full(n, 1e308), y])
    for penalty in (fl.penalties.GroupL2(0.01, [0, 1]), fl.penalties.GroupL2(0.01, [0, 0]), fl.penalties.L1(0.01)):
        problem = fl.Problem(X, y, fl.losses.Squared(), penalty)
        c = fl.certify(problem, np.zeros(2))
        assert c.gap >= c.primal - problem.primal(np.array([0.0, 1.0]))


def test_what_was_proven_cannot_be_changed_afterwards():
    problem = classification(intercept=True)
    result = fl.solve(problem, tol=1e-6, callback=lambda check: check.w.flags.writeable)
    assert result.status == "certified"
    new = rng.normal(size=(50, 5))
    labels, proven = result.certificate.labels(new)
    result.w[:] = -result.w  # the caller's own copy
    again, still = result.certificate.labels(new)
    assert np.array_equal(labels, again)
    assert np.array_equal(proven, still)
    problem = classification(intercept=True)
    result = fl.solve(problem, tol=1e-6)
    X = problem.design.matrix
    X -= 5.0
    with pytest.raises(ValueError, match="X has changed since this certificate was made"):
        result.certificate.labels(np.ones((2, 5)))
    with pytest.raises(ValueError, match="X has changed"):
        result.certificate.multipliers()
    with pytest.raises(ValueError, match="X has changed"):
        result.certificate.at(1.5 * result.w, result.b)


def test_several_scores_of_changed_data_prove_nothing_of_another_model():
    X, y = rng.normal(size=(30, 4)), np.arange(30) % 3
    result = fl.solve(fl.MulticlassProblem(X, y, fl.losses.Multinomial(), fl.penalties.L2(0.1)), tol=1e-6)
    X *= 2.0
    with pytest.raises(ValueError, match="X has changed"):
        result.certificate.at(1.5 * result.w, result.b)


@pytest.mark.parametrize("size", [5e-324, 1e-200, 1e200, 1e308])
def test_weights_of_any_size_count_by_their_ratios(size):
    X, y = rng.normal(size=(20, 2)), 1e-3 * rng.normal(size=20)
    plain = fl.certify(fl.Problem(X, y), np.zeros(2))
    weighted = fl.certify(fl.Problem(X, y, sample_weight=np.full(20, size)), np.zeros(2))
    assert weighted.primal == pytest.approx(plain.primal)
    assert weighted.gap == pytest.approx(plain.gap)
    with pytest.raises(ValueError, match="sample_weight has inf"):
        fl.Problem(X, y, sample_weight=np.inf)


def test_a_logistic_multiplier_is_never_exactly_at_its_bound():
    problem = fl.Problem([[1.0], [-1.0]], [1, -1], fl.losses.Logistic(), fl.penalties.L2(1e-12))
    best = fl.solve(problem, tol=1e-6, atol=1e-12)
    low, high = best.certificate.multipliers()
    assert np.all(low < high)
    never, _ = best.certificate.support_vectors()
    assert not never.any()


def test_pipelines_prove_no_labels_of_data_they_have_not_transformed():
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import LinearSVC

    X = rng.normal(size=(100, 2)) + np.array([100, 0])
    y = X[:, 0] > 100
    certificate = fl.certify(make_pipeline(StandardScaler(), LinearSVC(tol=1e-8)).fit(X, y), X, y)
    assert certificate.ok
    with pytest.raises(ValueError, match="certif"):
        certificate.labels(X)


def test_masked_and_complex_data_are_refused():
    masked = np.ma.array(np.ones((3, 2)), mask=[[0, 0], [0, 1], [0, 0]])
    with pytest.raises(ValueError, match="X has a masked entry at row 1, column 1"):
        fl.Problem(masked, np.ones(3))
    with pytest.raises(ValueError, match="y has a masked entry at position 2"):
        fl.Problem(np.ones((3, 2)), np.ma.array(np.ones(3), mask=[0, 0, 1]))
    with pytest.raises(ValueError, match="X has entries of type complex128"):
        fl.Problem(sp.csr_array(np.eye(3) * 1j), np.ones(3))


@pytest.mark.parametrize("gap", [0.0, 7.77e-14, 3e-9, 0.00012345, 0.5, 0.99, 12.3, 4567.8, 1.23e12, np.inf])
@pytest.mark.parametrize("tol", [0.0, np.inf])
@pytest.mark.parametrize("kind", [Certificate, InterpolationCertificate])
def test_repr_fits_in_thirty_characters_and_is_never_below_the_gap(gap, tol, kind):
    c = kind(
        1.0, 1.0 - gap, gap, gap, 0.0, tol, "test", 1.0, **{"feasible": "exact"} if kind is not Certificate else {}
    )
    text = repr(c)
    assert len(text) <= 30
    assert reprlib.repr(c) == text
    shown = re.fullmatch(r"Certificate\(gap=(.*), (ok|not ok)\)", text)
    assert float(shown[1]) >= gap
    assert float(shown[1]) <= 2 * gap or gap == 0.0
    assert (shown[2] == "ok") == c.ok
    assert str(c) != text
