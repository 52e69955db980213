"""Learning from a stream: one pass in batches, progressive validation, regret, a family of lam, bad batches."""

import itertools
import pickle
import tracemalloc
from copy import copy
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import fenchel as fl
from fenchel.solver import learner as learner_module
from fenchel.solver.learner import TUNING, Learner
from fenchel.steps.stochastic.comparison import Comparison, products

RNG = np.random.default_rng(0)
N, D = 3000, 20
X = RNG.normal(size=(N, D)) * (RNG.random((N, D)) < 0.5)
W = RNG.normal(size=D)
Y = np.sign(X @ W + 0.5 * RNG.normal(size=N))
T = X @ W + 0.1 * RNG.normal(size=N)
LOGISTIC, L2 = fl.losses.Logistic(), fl.penalties.L2(1e-2)


def pieces(size, y=Y, matrix=X, weights=None):
    for first in range(0, len(y), size):
        part = slice(first, first + size)
        yield (matrix[part], y[part]) if weights is None else (matrix[part], y[part], weights[part])


@pytest.mark.parametrize("p", [2.0, 1.5])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array, sp.csc_array, lambda A: A.astype(np.float32)])
def test_the_sizes_of_the_pieces_do_not_matter(p, storage):
    penalty = fl.penalties.LpSquared(1e-2, p)
    one, many = (
        fl.stream(pieces(size, matrix=storage(X)), LOGISTIC, penalty, batch_size=10, intercept=True)
        for size in (N, 100)
    )
    np.testing.assert_allclose(one.w, many.w, rtol=1e-9, atol=1e-12)
    assert one.b == pytest.approx(many.b, rel=1e-9)
    assert (one.n_samples, one.n_batches, one.n_steps) == (N, 1, N // 10)
    assert (many.n_samples, many.n_batches, many.n_steps) == (N, 30, N // 10)
    assert one.progressive_loss == pytest.approx(many.progressive_loss, rel=1e-9)


def test_a_stream_is_one_cyclic_pass_of_the_solver():
    problem = fl.Problem(X, Y, LOGISTIC, L2)
    with pytest.warns(fl.NotCertifiedWarning):
        solved = fl.solve(problem, solver="pgs", sampling="cyclic", output="last", max_iter=1, tol=1e-12)
    learnt = fl.stream(pieces(70), LOGISTIC, L2, output="last")
    np.testing.assert_allclose(learnt.w, solved.w, rtol=1e-9, atol=1e-13)


def test_losses_are_those_of_samples_before_they_are_learnt():
    learner, losses = Learner(LOGISTIC, L2, batch_size=1), []
    for i in range(300):
        w = np.zeros(D) if i == 0 else learner.model("last")[0][0]
        losses.append(float(LOGISTIC.value(X[i : i + 1] @ w, Y[i : i + 1])[0]))
        learner.learn(X[i : i + 1], Y[i : i + 1])
    assert learner.progressive_loss == pytest.approx(np.mean(losses), rel=1e-9)


@pytest.mark.parametrize("p", [2.0, 1.5, 1.2])
@pytest.mark.parametrize("loss", [LOGISTIC, fl.losses.Hinge()], ids=str)
def test_the_regret_is_below_its_bound(p, loss):
    penalty, count = fl.penalties.LpSquared(1e-2, p), 500
    learner, objective = Learner(loss, penalty, batch_size=1), 0.0
    for i in range(count):
        w = np.zeros(D) if i == 0 else learner.model("last")[0][0]
        objective += float(loss.value(X[i : i + 1] @ w, Y[i : i + 1])[0]) + penalty.value(w)
        learner.learn(X[i : i + 1], Y[i : i + 1])
    best = fl.solve(fl.Problem(X[:count], Y[:count], loss, penalty), tol=1e-8).certificate
    assert objective / count - best.primal <= learner.regret_bound
    assert learner.regret_bound == pytest.approx(learner.result().regret_bound)


def test_there_is_no_regret_bound_with_an_unpenalised_intercept():
    assert fl.stream(pieces(100), LOGISTIC, L2, intercept=True).regret_bound == np.inf


@pytest.mark.parametrize("p", [2.0, 1.5])
def test_the_regret_bound_holds_for_one_ball_only(p):
    """The squared loss has no Lipschitz constant: its ball moves from batch to batch."""
    squared, penalty = fl.losses.Squared(), fl.penalties.LpSquared(1e-2, p)
    learner = Learner(squared, penalty)
    learner.learn(X[:500], T[:500])
    assert np.isfinite(learner.regret_bound)
    with pytest.raises(ValueError, match="499 entries"):
        learner.learn(X[:500], T[:499])
    assert np.isfinite(learner.regret_bound)  # the batch that failed moved nothing
    learner.learn(X[500:600], T[500:600])
    assert learner.regret_bound == learner.result().regret_bound == np.inf
    learner.learn(X[600:700], T[600:700])
    assert learner.regret_bound == np.inf
    assert np.isfinite(fl.stream(pieces(100, T), fl.losses.Absolute(), penalty).regret_bound)


def test_a_model_of_a_stream_is_certified_on_any_data():
    result = fl.stream(pieces(100), LOGISTIC, L2)
    problem = fl.Problem(X, Y, LOGISTIC, L2)
    certificate, best = fl.certify(problem, result.w, result.b), fl.solve(problem, tol=1e-9).certificate
    assert 0.0 <= certificate.primal - best.dual <= certificate.gap * (1.0 + 1e-9)
    assert certificate.relative_gap < 0.1


def test_weights_count_like_repeated_samples_in_the_loss():
    weights = np.random.default_rng(1).integers(0, 3, size=N).astype(float)
    result = fl.stream(pieces(100, weights=weights), LOGISTIC, L2)
    problem = fl.Problem(X, Y, LOGISTIC, L2, sample_weight=weights)
    best = fl.solve(problem, tol=1e-8).certificate.primal
    assert problem.primal(result.w) - best < 0.05 * best
    assert result.n_samples == np.count_nonzero(weights)


@pytest.mark.parametrize("loss", [fl.losses.Squared(), fl.losses.Huber(1.0), fl.losses.Absolute()], ids=str)
def test_regressions_are_learnt(loss):
    result = fl.stream(pieces(100, T + 5.0), loss, fl.penalties.L2(1e-2), intercept=True)
    assert np.isnan(result.recent_error)
    assert result.b == pytest.approx(5.0, abs=1.0)
    assert 1.0 - np.corrcoef(X @ result.w, T)[0, 1] < 0.02


@pytest.mark.parametrize("p", [2.0, 1.5])
@pytest.mark.parametrize(("loss", "y"), [(LOGISTIC, Y), (fl.losses.Squared(), T)], ids=["labels", "targets"])
def test_a_family_of_lam_ends_near_its_best(p, loss, y):
    half = N // 2
    penalty = fl.penalties.LpSquared(1.0, p)
    chosen = fl.stream(pieces(100, y[:half], X[:half]), loss, penalty, lam="auto")
    assert len(chosen.family) == TUNING.family
    least = min(chosen.family.values())
    assert chosen.family[chosen.lam] - least < 0.3 * least
    losses = {}
    for lam in chosen.family:
        alone = fl.stream(pieces(100, y[:half], X[:half]), loss, penalty.with_lam(lam))
        scores = X[half:] @ alone.w
        losses[lam] = np.mean(scores * y[half:] <= 0.0) if loss is LOGISTIC else np.mean(loss.value(scores, y[half:]))
        if lam == chosen.lam:
            np.testing.assert_allclose(alone.w, chosen.w, rtol=1e-8, atol=1e-11)
    least = min(losses.values())
    assert losses[chosen.lam] - least < 0.5 * least
    assert str(chosen.choice) in str(chosen)


@pytest.mark.parametrize(("loss", "y"), [(LOGISTIC, Y), (fl.losses.Squared(), T)], ids=["labels", "targets"])
@pytest.mark.parametrize("seed", range(4))
def test_the_choice_of_lam_states_its_rule_with_its_numbers(loss, y, seed):
    order = np.random.default_rng(seed).permutation(N)[:700]
    choice = fl.stream(pieces(100, y[order], X[order]), loss, intercept=True).choice
    last = [lam for lam in choice.losses if lam not in choice.dropped]
    if loss is LOGISTIC:
        least = min(choice.errors[lam] for lam in last)
        assert 0.0 < choice.deviation < 0.1
        last = [lam for lam in last if choice.errors[lam] <= least + choice.deviation]
        assert f"error of at most {least + choice.deviation:.4g}: the least, {least:.4g} of lam" in str(choice)
    else:
        assert choice.errors == {}
    assert choice.lam == min(last, key=choice.losses.__getitem__)
    assert f"lam {choice.lam:.3g} was chosen for its recent loss of {choice.losses[choice.lam]:.4g}" in str(choice)
    assert all(f"{value:.4g}" in str(choice) for value in [*choice.errors.values(), *choice.losses.values()])


def test_the_deviation_of_an_error_is_that_of_a_weighted_mean():
    """sqrt(e (1 - e) sum s^2) / sum s, over every fourth sample."""
    s = np.random.default_rng(0).random(100) ** 3
    choice = fl.stream([(X[:100], Y[:100], s)], LOGISTIC).choice
    least = min(choice.errors.values())
    expected = np.sqrt(least * (1.0 - least) * np.sum(s[::4] ** 2)) / s[::4].sum()
    assert choice.deviation == pytest.approx(expected)


def test_limits_callbacks_and_interrupts_end_a_stream_with_its_model(clock):
    endless = itertools.cycle(pieces(100))
    assert fl.stream(endless, LOGISTIC, L2, max_seconds=5.0).status == "max_seconds"
    seen = []
    stopped = fl.stream(pieces(100), LOGISTIC, L2, callback=lambda r: seen.append(r) or len(seen) == 3)
    assert (stopped.status, stopped.n_batches, len(seen)) == ("callback", 3, 3)

    def interrupted():
        yield X[:100], Y[:100]
        raise KeyboardInterrupt

    result = fl.stream(interrupted(), LOGISTIC, L2)
    assert (result.status, result.n_samples) == ("interrupted", 100)


def test_progress_is_shown(capsys):
    fl.stream(pieces(100), LOGISTIC, L2)
    assert capsys.readouterr().out == ""
    fl.stream(pieces(100), LOGISTIC, L2, progress=True)
    shown = capsys.readouterr().out
    assert f"{N} samples" in shown
    assert "per second" in shown


def nan_in(A):
    A = A.copy()
    A[3, 2] = np.nan
    return A


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (lambda: (nan_in(X[:9]), Y[:9]), r"batch 3: .*(NaN|nan|finite)"),
        (lambda: (X[:9, :-1], Y[:9]), r"batch 3: X has 19 features, but the stream has had 20 so far"),
        (lambda: (X[:9], np.full(9, 2.0)), r"batch 3: .*-1"),
        (lambda: (X[:0], Y[:0]), r"batch 3: "),
        (lambda: (X[:9], Y[:8]), r"batch 3: "),
        (lambda: (X[:9], Y[:9], -np.ones(9)), r"batch 3: .*negative"),
        (lambda: X[:9], r"batch 3: expected a tuple"),
        (lambda: (np.array([["a"] * D]), [1.0]), r"batch 3: "),
        (lambda: (np.ma.masked_less(X[:9], 0.0), Y[:9]), r"batch 3: X has a masked entry"),
        (lambda: (X[:9], np.ma.masked_less(Y[:9], 0.0)), r"batch 3: y has a masked entry"),
    ],
)
def test_a_bad_batch_is_named_and_the_model_before_it_is_kept(bad, message):
    good = list(pieces(100))[:2]
    before = fl.stream(good, LOGISTIC, L2)
    with pytest.raises(fl.StreamError, match=message) as caught:
        fl.stream([*good, bad()], LOGISTIC, L2)
    assert caught.value.batch == 3
    np.testing.assert_array_equal(caught.value.result.w, before.w)
    assert caught.value.result.n_samples == 200


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"lam": 0.1}, ValueError, "give one of them"),
        ({"lam": "best"}, ValueError, "lam must be"),
        ({"output": "random"}, ValueError, "output must be one of"),
        ({"batch_size": 0}, ValueError, "batch_size must be"),
        ({"penalty": fl.penalties.L1(0.1)}, TypeError, "L2, LpSquared or SignedEntropy"),
        ({"constant": np.nan}, ValueError, "constant must be a finite number"),
        ({"constant": 1.0, "intercept": True}, ValueError, "give one of them"),
        ({"intercept": 1}, TypeError, "intercept must be True or False"),
        ({"max_seconds": -1.0}, ValueError, "max_seconds must not be negative"),
    ],
)
def test_bad_options_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        fl.stream(pieces(100), LOGISTIC, **({"penalty": L2} | options))


def test_a_batch_with_which_the_weights_diverge_leaves_the_model():
    """As often as one likes."""
    good = list(pieces(100))[:3]
    learner = Learner(fl.losses.Squared(), fl.penalties.L2(1e-2), batch_size=1)
    for k, batch in enumerate(good):
        learner.learn(*batch)
        before = learner.result()
        for _ in range(2):
            with np.errstate(all="ignore"), pytest.raises(OverflowError, match="the weights diverge"):
                learner.learn(1e300 * X[:9], Y[:9])
        np.testing.assert_array_equal(learner.result().w, before.w)
        assert (learner.n_batches, learner.result().progressive_loss) == (k + 1, before.progressive_loss)
    np.testing.assert_array_equal(learner.result().w, fl.stream(good, fl.losses.Squared(), L2).w)


@pytest.mark.parametrize("p", [2.0, 1.5])
@pytest.mark.parametrize("lam", [None, "auto"])
@pytest.mark.parametrize("constant", [0.0, 2.0])
def test_a_batch_of_few_entries_is_undone_if_it_fails(p, lam, constant, monkeypatch):
    """Only what it has touched is copied before; entry by entry the models are what they were."""
    wide = sp.random_array((60, 500), density=0.01, format="csr", rng=np.random.default_rng(0))
    learner = Learner(
        fl.losses.Squared(), fl.penalties.LpSquared(0.01, p), lam == "auto", batch_size=2, constant=constant
    )
    learner.learn(wide[:30], T[:30])
    arrays = ("table", "w", "sum", "numbers", "t", "radius")
    before = [{name: copy(getattr(models, name)) for name in arrays} for models in learner.models]
    with monkeypatch.context() as patch:
        patch.setattr(Learner, "_are_finite", lambda self, rows=None: np.zeros(len(self.kept), dtype=bool))
        with pytest.raises(OverflowError):
            learner.learn(wide[30:40], T[30:40])
    for models, known in zip(learner.models, before, strict=True):
        for name in arrays:
            np.testing.assert_array_equal(getattr(models, name), known[name])
    learner.learn(wide[30:], T[30:60])
    assert learner.n_samples == 60


def test_a_batch_costs_what_it_touches():
    """No array of all features is copied or checked for a sample of a sparse stream."""
    wide = sp.random_array((20, 100_000), density=1e-4, format="csr", rng=np.random.default_rng(0))
    learner, most = Learner(LOGISTIC, L2, intercept=True), []
    learner.learn(wide[:1], Y[:1])
    tracemalloc.start()
    for k in range(1, 20):
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        learner.learn(wide[k : k + 1], Y[k : k + 1])
        most.append(tracemalloc.get_traced_memory()[1] - before)
    tracemalloc.stop()
    assert max(most) < 100_000  # bytes; a copy of the state has 1.6 million


class Own(fl.losses.Logistic):
    """A loss without a compiled version, which fails as often as it is told to."""

    failures: tuple = ()

    def kernel(self):
        return None

    def derivative(self, z, y):
        if np.any(y > 1.5):
            raise self.failures[0]
        return super().derivative(z, np.sign(y))


@pytest.mark.parametrize("p", [2.0, 1.5])
@pytest.mark.parametrize("lam", [0.01, "auto"])
def test_a_loss_without_a_compiled_version_is_learnt_like_others(p, lam):
    penalty = fl.penalties.LpSquared(0.01, p)
    own, compiled = (
        fl.stream(pieces(100), loss, penalty, lam=None if lam == 0.01 else lam, batch_size=5)
        for loss in (Own(), LOGISTIC)
    )
    tol = 1e-9 if lam == 0.01 else 1e-6  # steps of the smallest lam of a family are long, and so are their roundings
    np.testing.assert_allclose(own.w, compiled.w, rtol=tol, atol=tol / 1000)
    assert own.progressive_loss == pytest.approx(compiled.progressive_loss, rel=tol)
    assert own.recent_error == pytest.approx(compiled.recent_error)
    assert own.regret_bound == pytest.approx(compiled.regret_bound, rel=tol)


@pytest.mark.parametrize("error", [ValueError("of the loss"), KeyboardInterrupt()], ids=["error", "ctrl-c"])
def test_what_a_batch_has_begun_is_undone_if_it_is_broken_off(error, monkeypatch):
    """In the second step of the third batch."""
    loss = Own()
    monkeypatch.setattr(Own, "failures", (error,))
    monkeypatch.setattr(Own, "is_classification", False)
    good = list(pieces(100))[:2]
    before = fl.stream(good, loss, L2, batch_size=50)
    broken = (X[:100], np.where(np.arange(100) < 70, Y[:100], 2.0))
    if isinstance(error, KeyboardInterrupt):
        result = fl.stream([*good, broken], loss, L2, batch_size=50)
        assert result.status == "interrupted"
    else:
        with pytest.raises(fl.StreamError, match="batch 3: of the loss") as caught:
            fl.stream([*good, broken], loss, L2, batch_size=50)
        result = caught.value.result
    np.testing.assert_array_equal(result.w, before.w)
    assert (result.n_samples, result.n_batches, result.n_steps) == (200, 2, 4)


@pytest.mark.parametrize(
    "penalty", [L2, fl.penalties.LpSquared(0.01, 1.2), fl.penalties.SignedEntropy(0.01, 20.0)], ids=str
)
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array, sp.csc_array])
def test_a_constant_is_one_more_feature(penalty, storage):
    """The bias inside the norm: its weight is that of a column of twos, and penalised."""
    wide = np.column_stack([X, np.full(N, 2.0)])
    inside = fl.stream(pieces(100, matrix=storage(X)), LOGISTIC, penalty, constant=2.0, batch_size=4)
    explicit = fl.stream(pieces(100, matrix=wide), LOGISTIC, penalty, batch_size=4)
    np.testing.assert_allclose(np.append(inside.w, inside.b / 2.0), explicit.w, rtol=1e-8, atol=1e-11)
    assert inside.regret_bound == pytest.approx(explicit.regret_bound, rel=1e-9)
    problem = fl.Problem(fl.Design(X, constant=2.0), Y, LOGISTIC, penalty)
    certificate = fl.certify(problem, np.append(inside.w, inside.b / 2.0))
    assert certificate.primal - fl.solve(problem, tol=1e-8).certificate.primal <= certificate.gap
    assert certificate.relative_gap < 0.5


def test_exponentiated_gradients_learn_which_of_many_features_count():
    """Three of 2000: with fewer mistakes than by squared 2-norms, both with the lam that is best for them."""
    rng = np.random.default_rng(0)
    A = np.sign(rng.normal(size=(1500, 2000)))
    y = np.sign(A[:, :3].sum(axis=1))
    error = {}
    for penalty in (fl.penalties.SignedEntropy(1.0, 10.0), fl.penalties.L2(1.0)):
        found = fl.stream(pieces(100, y, A), LOGISTIC, penalty, lam="auto")
        error[type(penalty)] = np.mean(np.sign(A @ found.w) != y)
        assert found.family[found.lam] <= 1.1 * min(found.family.values())
    assert error[fl.penalties.SignedEntropy] < error[fl.penalties.L2] / 3.0


def test_an_empty_stream_is_an_error():
    with pytest.raises(ValueError, match="the stream is empty"):
        fl.stream([], LOGISTIC, L2)


def test_a_source_that_fails_keeps_the_model():
    def failing():
        yield from list(pieces(100))[:2]
        raise OSError("disk")

    with pytest.raises(fl.StreamError, match=r"batch 3: reading it failed.*disk") as caught:
        fl.stream(failing(), LOGISTIC, L2)
    assert caught.value.result.n_samples == 200
    assert caught.value.result.status == "error"
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (str(copy), copy.batch) == (str(caught.value), 3)


def test_ctrl_c_before_the_first_batch_is_not_swallowed():
    def interrupted():
        raise KeyboardInterrupt
        yield

    with pytest.raises(KeyboardInterrupt):
        fl.stream(interrupted(), LOGISTIC, L2)


@pytest.mark.parametrize("unit", [1e-160, 1.0, 1e160])
@pytest.mark.parametrize("order", [slice(None), slice(None, None, -1)], ids=["light first", "heavy first"])
def test_the_losses_are_weighted_means(order, unit):
    """Scores are 0, so that the loss is y^2 / 2, however the weights change from batch to batch."""
    batches = [
        (np.zeros((50, 3)), np.full(50, y), np.full(50, unit * weight))
        for y, weight in [(1.0, 1.0), (0.0, 100.0), (3.0, 7.0)][order]
    ]
    expected = (0.5 * 1.0 + 0.0 * 100.0 + 4.5 * 7.0) / 108.0
    for lam in (1.0, "auto"):
        result = fl.stream(batches, fl.losses.Squared(), lam=lam)
        assert result.progressive_loss == pytest.approx(expected, rel=1e-12)
    model = fl.LpRegressor(lam=1.0, fit_intercept=False)
    for A, y, weights in batches:
        model.partial_fit(A, y, sample_weight=weights)
    assert model.progressive_loss_ == pytest.approx(expected, rel=1e-12)


def test_the_recent_loss_is_a_weighted_mean():
    """Of every fourth sample of the window, by the average before its step."""
    y, s = np.arange(96.0), np.repeat([1.0, 100.0, 0.01], 32)
    batches = [(np.zeros((32, 1)), y[k : k + 32], s[k : k + 32]) for k in (0, 32, 64)]
    expected = np.average(y[::4] ** 2 / 2.0, weights=s[::4])
    assert fl.stream(batches, fl.losses.Squared(), L2).recent_loss == pytest.approx(expected, rel=1e-12)


def test_the_unit_of_the_weights_does_not_matter():
    weights = np.random.default_rng(1).random(N) * np.repeat([1.0, 30.0, 0.1], N // 3)
    one, other = (
        fl.stream(pieces(100, weights=unit * weights), LOGISTIC, lam="auto", intercept=True)
        for unit in (1.0, 2.0**-600)
    )
    np.testing.assert_allclose(one.w, other.w, rtol=1e-9, atol=1e-12)
    assert one.family == pytest.approx(other.family)
    assert one.dropped == other.dropped
    assert one.recent_error == pytest.approx(other.recent_error)


def test_a_batch_may_be_a_design():
    whole = fl.stream(pieces(100), LOGISTIC, L2, constant=2.0)
    designs = ((fl.Design(A, constant=2.0), y) for A, y in pieces(100))
    np.testing.assert_array_equal(fl.stream(designs, LOGISTIC, L2, constant=2.0).w, whole.w)
    with pytest.raises(fl.StreamError, match="batch 1: X has constant=2, but the stream has constant=0"):
        fl.stream([(fl.Design(X, constant=2.0), Y)], LOGISTIC, L2)


def test_a_batch_without_weight_is_counted_and_changes_nothing():
    good = list(pieces(100))[:2]
    nothing = (X[:5], Y[:5], np.zeros(5))
    with_it = fl.stream([nothing, good[0], nothing, good[1]], LOGISTIC, L2)
    np.testing.assert_array_equal(with_it.w, fl.stream(good, LOGISTIC, L2).w)
    assert (with_it.n_batches, with_it.n_samples) == (4, 200)


@pytest.mark.parametrize("scale", [0.1, 1.0, 1e3])
def test_models_that_diverge_are_an_error(scale):
    with pytest.raises(fl.StreamError, match="batch 1: the weights diverge"):
        fl.stream([(scale * X, Y)], fl.losses.Exponential(), fl.penalties.L2(1e-12), intercept=True)
    learnt = fl.stream([(scale * X, Y)], fl.losses.Exponential(), lam="auto", intercept=True)
    assert np.isfinite([*learnt.w, learnt.b]).all()


def test_features_out_of_range_are_refused():
    for scale in (1e160, 1e-160):
        with pytest.raises(fl.StreamError, match="out of range; scale them"):
            fl.stream([(scale * X, Y)], LOGISTIC)


def test_the_intercept_of_targets_follows_later_batches():
    first, rest = (X[:10], np.zeros(10)), pieces(100, np.full(N, 5.0))
    result = fl.stream([first, *rest], fl.losses.Absolute(), fl.penalties.L2(1.0), intercept=True)
    assert result.b == pytest.approx(5.0, abs=0.5)


def test_the_first_batch_does_not_limit_gradient_steps():
    wide = sp.random_array((300, 2000), density=0.01, format="csr", rng=np.random.default_rng(2))
    learner = Learner(LOGISTIC, fl.penalties.LpSquared(0.1, 1.5))
    learner.learn(wide[:1], Y[:1])
    assert learner.batch > 20


def gaussians(n, seed=0, features=50, labels=True):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, features))
    z = A @ rng.normal(size=features) + rng.normal(size=n)
    return A, np.sign(z) if labels else z


@pytest.mark.parametrize(
    ("loss", "labels"),
    [(LOGISTIC, True), (fl.losses.Squared(), False), (Own(), True)],
    ids=["labels", "targets", "own"],
)
@pytest.mark.parametrize("p", [2.0, 1.5])
def test_lams_that_are_clearly_worse_stop_to_learn(loss, labels, p):
    A, y = gaussians(6000, labels=labels)
    penalty = fl.penalties.LpSquared(1.0, p)
    result = fl.stream(pieces(500, y, A), loss, penalty, lam="auto", intercept=True, batch_size=4)
    assert len(result.family) == TUNING.family
    assert len(result.dropped) >= 2
    assert result.lam not in result.dropped
    assert all(0 < count < 6000 for count in result.dropped.values())
    assert "was clearly worse than another, and learnt no more" in str(result)
    assert all(f"After {count} samples" in str(result) for count in result.dropped.values())


@pytest.mark.parametrize("p", [2.0, 1.5])
def test_a_lam_learns_the_same_whichever_are_dropped(p, monkeypatch):
    A, y = gaussians(6000)
    penalty = fl.penalties.LpSquared(1.0, p)
    result = fl.stream(pieces(500, y, A), LOGISTIC, penalty, lam="auto", intercept=True)
    alone = fl.stream(pieces(500, y, A), LOGISTIC, penalty.with_lam(result.lam), intercept=True)
    np.testing.assert_allclose(result.w, alone.w, rtol=1e-9, atol=1e-12)
    assert result.b == pytest.approx(alone.b, rel=1e-9)
    assert result.progressive_loss == pytest.approx(alone.progressive_loss, rel=1e-9)
    assert result.recent_error == pytest.approx(alone.recent_error)
    monkeypatch.setattr(learner_module, "TUNING", replace(TUNING, clear=np.inf))
    all_go_on = fl.stream(pieces(500, y, A), LOGISTIC, penalty, lam="auto", intercept=True)
    assert all_go_on.dropped == {}
    kept = set(result.family) - set(result.dropped)
    assert {lam: all_go_on.family[lam] for lam in kept} == pytest.approx({lam: result.family[lam] for lam in kept})
    assert all_go_on.recent_error == pytest.approx(result.recent_error, abs=0.01)


def test_a_batch_that_fails_brings_back_the_lams_that_it_dropped():
    A, y = gaussians(6000)
    learner = Learner(Own(), L2, automatic=True, batch_size=8)
    learner.learn(A[:100], y[:100])
    before, kept, weights = learner.result(), learner.kept, learner.models[0].average()
    assert len(kept) == TUNING.family

    class Fails(Own):
        def derivative(self, z, y):
            if len(learner.kept) < TUNING.family:
                raise ValueError("after lams were dropped")
            return super().derivative(z, y)

    learner.loss = Fails()
    with pytest.raises(ValueError, match="after lams were dropped"):
        learner.learn(A[100:], y[100:])
    np.testing.assert_array_equal(learner.kept, kept)
    np.testing.assert_array_equal(learner.models[0].average(), weights)
    assert (learner.dropped, learner.result().family) == ({}, before.family)
    learner.loss = Own()
    learner.learn(A[100:], y[100:])
    assert len(learner.kept) < TUNING.family


@pytest.mark.parametrize("seed", range(3))
def test_a_rare_class_does_not_drop_the_lams_that_find_it(seed):
    """At first no model is better than one that never predicts it."""
    A, _ = gaussians(40_000, seed)
    z = A @ np.random.default_rng(seed).normal(size=50)
    y = np.where(z > np.quantile(z, 0.99), 1.0, -1.0)
    chosen = fl.stream([(A[:20_000], y[:20_000])], LOGISTIC, intercept=True)
    errors = {}
    for lam in chosen.family:
        alone = fl.stream([(A[:20_000], y[:20_000])], LOGISTIC, fl.penalties.L2(lam), intercept=True)
        errors[lam] = np.mean(np.sign(A[20_000:] @ alone.w + alone.b) != y[20_000:])
    assert min(errors.values()) < 0.008  # of 0.01 without the class
    assert errors[chosen.lam] - min(errors.values()) < 0.001


def comparison(errors, losses, samples=4000):
    """Independent mistakes with these probabilities, losses with these means."""
    rng = np.random.default_rng(0)
    each = np.empty((samples, 2, len(errors), 1))
    each[:, 0, :, 0] = rng.random((samples, len(errors))) < errors
    each[:, 1, :, 0] = rng.exponential(losses, size=(samples, len(errors)))
    sums = each.sum(axis=(0, 3))
    return Comparison(sums[0], sums[1], products(each, np.ones(samples)), float(samples))


def test_products_give_the_squares_of_differences():
    rng = np.random.default_rng(0)
    each, s = rng.random((30, 2, 3, 2)), rng.random(30)
    found = products(each, s)
    x = each.mean(axis=3)
    for kind in range(2):
        difference = np.sum(s**2 * (x[:, kind, 0] - x[:, kind, 2]) ** 2)
        assert found[kind, 0, 0] + found[kind, 2, 2] - 2.0 * found[kind, 0, 2] == pytest.approx(difference)
        assert found[kind, 1, -1] == pytest.approx(np.sum(s**2 * x[:, kind, 1]))


@pytest.mark.parametrize(
    ("errors", "losses", "best", "worse"),
    [
        ([0.4, 0.3, 0.1, 0.1, 0.1, 0.1], [1.0, 1.0, 1.0, 1.0, 1.0, 1.0], 2, [0, 1]),  # larger lams
        ([0.1, 0.1, 0.1, 0.4, 0.4, 0.4], [1.0, 1.0, 1.0, 9.0, 9.0, 9.0], 2, [5]),  # smaller ones one by one
        ([0.1, 0.1, 0.1, 0.4, 0.4], [1.0, 1.0, 1.0, 9.0, 9.0], 2, [4]),
        ([0.1, 0.1, 0.1, 0.4], [1.0, 1.0, 1.0, 9.0], 2, []),  # but not the next
        ([0.001, 0.001, 0.001, 0.4, 0.4, 0.4], [1.0, 1.0, 1.0, 9.0, 9.0, 9.0], 2, []),  # nor after few mistakes
    ],
)
def test_which_lams_are_clearly_worse(errors, losses, best, worse):
    found = comparison(errors, losses).worse(best, 4.0, 32)
    np.testing.assert_array_equal(np.flatnonzero(found), worse)


def test_no_smaller_lam_goes_before_a_larger_one():
    found = comparison([0.1, 0.1, 0.1, 0.4, 0.4, 0.4], [1.0, 1.0, 1.0, 9.0, 9.0, 9.0])
    assert not found.worse(0, 4.0, 32, inside=False).any()
    np.testing.assert_array_equal(np.flatnonzero(found.worse(0, 4.0, 32, inside=True)), [5])
