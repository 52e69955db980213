"""LpClassifier and LpRegressor: certified fits, and learning from batches."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_digits
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import scale

import fenchel as fl

DIGITS = load_digits()
X = scale(DIGITS.data)
TWO = DIGITS.target < 2
DIABETES, TARGETS = load_diabetes(return_X_y=True)


def learnt(model, A, y, size=50, **first):
    for k in range(0, len(y), size):
        model.partial_fit(A[k : k + size], y[k : k + size], **(first if k == 0 else {}))
    return model


@pytest.mark.parametrize("p", [2.0, 1.5])
@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_a_fit_is_the_certified_optimum(p, loss):
    model = fl.LpClassifier(loss, p, 0.01, tol=1e-6).fit(X[TWO], DIGITS.target[TWO])
    assert model.certificate_.ok
    problem = fl.Problem(
        X[TWO],
        2.0 * DIGITS.target[TWO] - 1.0,
        model._objective().loss,
        fl.penalties.LpSquared(0.01, p),
        intercept=True,
    )
    assert problem.primal(model.coef_[0], model.intercept_[0]) == pytest.approx(model.certificate_.primal, rel=1e-9)


@pytest.mark.parametrize("p", [2.0, 1.5])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_matrix])
def test_labels_are_learnt_from_batches(p, storage):
    for y in (np.array(["no", "yes"])[(DIGITS.target == 3).astype(int)], DIGITS.target):
        model = learnt(fl.LpClassifier(p=p, lam=0.01), storage(X), y, classes=np.unique(y))
        assert np.mean(model.predict(storage(X)) != y) < 0.2
        assert model.n_samples_seen_ == len(y)
        assert model.predict_proba(X).shape == (len(y), len(np.unique(y)))
        certificate = fl.certify(model, X, y)
        best = fl.LpClassifier(p=p, lam=0.01).fit(X, y).certificate_
        assert 0.1 * best.primal < certificate.primal - certificate.gap <= best.primal  # a bound, and not an empty one


def test_several_classes_are_one_against_the_rest():
    model = learnt(fl.LpClassifier(lam=0.01), X, DIGITS.target, classes=np.arange(10))
    for k in (0, 7):
        alone = learnt(fl.LpClassifier(lam=0.01), X, DIGITS.target == k, classes=[False, True])
        np.testing.assert_allclose(model.coef_[k], alone.coef_[0], rtol=1e-8, atol=1e-11)
        assert model.intercept_[k] == pytest.approx(alone.intercept_[0], rel=1e-8)


def test_targets_are_learnt_from_batches():
    A = scale(DIABETES)
    model = learnt(fl.LpRegressor(lam=0.1), A, TARGETS)
    assert model.coef_.shape == (10,)
    best = fl.LpRegressor(lam=0.1).fit(A, TARGETS)
    assert abs(best.score(A, TARGETS) - model.score(A, TARGETS)) < 0.03


def test_batches_go_on_from_a_fit():
    y = DIGITS.target[TWO]
    fitted = fl.LpClassifier(lam=0.01, tol=1e-8).fit(X[TWO], y)
    best = fitted.certificate_.primal
    cold = fl.LpClassifier(lam=0.01).partial_fit(X[TWO][:20], y[:20], classes=[0, 1])
    warm = fitted.partial_fit(X[TWO][:20], y[:20])
    assert fl.certify(warm, X[TWO], y).primal - best < 0.1 * (fl.certify(cold, X[TWO], y).primal - best)


def test_lam_is_chosen_by_progressive_validation():
    y = DIGITS.target
    model = fl.LpClassifier(lam="auto").fit(X, y)
    assert model.certificate_.ok
    stream = learnt(fl.LpClassifier(lam="auto"), X, y, classes=np.arange(10))
    scores = {}
    for lam in stream.stream_.lams:
        scores[lam] = learnt(fl.LpClassifier(lam=lam), X, y, classes=np.arange(10)).score(X, y)
    assert max(scores.values()) - stream.score(X, y) < 0.03
    family = 10.0**-1.5 * np.mean(np.square(X).sum(axis=1)) * 10.0 ** -np.arange(6.0)
    assert np.count_nonzero(np.isclose(family, model.lam_)) == 1


@pytest.mark.parametrize("make", [fl.LpClassifier, fl.LpRegressor])
def test_estimators_say_why_they_chose_lam(make):
    y, first = DIGITS.target[TWO], {} if make is fl.LpRegressor else {"classes": [0, 1]}
    assert make(lam=0.01).fit(X[TWO], y).lam_choice_ is None
    assert make(lam=0.01).partial_fit(X[TWO], y, **first).lam_choice_ is None
    for model in (make().fit(X[TWO], y), make().partial_fit(X[TWO], y, **first)):
        choice = model.lam_choice_
        assert choice.lam == model.lam_
        assert len(choice.losses) == 6
        assert (choice.errors == {}) is (make is fl.LpRegressor)
        assert f"lam {model.lam_:.3g} was chosen for its recent loss" in str(choice)
    fitted = make().fit(X[TWO], y)
    choice = fitted.lam_choice_
    assert fitted.partial_fit(X[TWO], y).lam_choice_ is choice


def test_a_model_of_a_stream_can_be_copied_and_stored():
    y = DIGITS.target
    model = learnt(fl.LpClassifier(lam=0.01), X[:900], y[:900], classes=np.arange(10))
    copy = pickle.loads(pickle.dumps(model))
    for each in (model, copy):
        each.partial_fit(X[900:], y[900:])
    np.testing.assert_array_equal(model.coef_, copy.coef_)
    assert not hasattr(clone(model), "coef_")


def test_a_model_that_has_dropped_lams_can_be_copied_and_stored():
    y = DIGITS.target
    model = learnt(fl.LpClassifier(), X[:1500], y[:1500], classes=np.arange(10))
    assert model.stream_.dropped
    copy = pickle.loads(pickle.dumps(model))
    for each in (model, copy):
        each.partial_fit(X[1500:], y[1500:])
        assert each.coef_.shape == (10, 64)
    np.testing.assert_array_equal(model.coef_, copy.coef_)
    alone = learnt(fl.LpClassifier(lam=model.lam_), X[:1500], y[:1500], classes=np.arange(10))
    np.testing.assert_allclose(model.coef_, alone.partial_fit(X[1500:], y[1500:]).coef_, rtol=1e-8, atol=1e-11)
    assert not hasattr(clone(model), "stream_")


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (lambda: (np.full((3, 64), np.nan), [0, 1, 2]), r"batch 2: .*NaN"),
        (lambda: (np.full((3, 64), np.nan), np.arange(3)), r"batch 2: .*NaN"),
        (lambda: (sp.csr_array(np.full((3, 64), np.inf)), np.arange(3)), r"batch 2: .*infinity"),
        (lambda: (X[:3, :60], [0, 1, 2]), r"batch 2: .*60 features"),
        (lambda: (X[:3], [0, 1, 77]), r"batch 2: y has the label .*77"),
        (lambda: (X[:3], np.array([0.0, 1.0, np.nan])), r"batch 2: y has the label nan"),
        (lambda: (X[:3], np.array(["a", "b", "c"])), r"batch 2: y has the label a"),
        (lambda: (X[:3], np.arange(2)), r"batch 2: .*inconsistent"),
        (lambda: (X[:0], []), r"batch 2: .*0 sample"),
    ],
)
def test_a_bad_batch_is_named_and_changes_nothing(batch, message):
    model = fl.LpClassifier(lam=0.01).partial_fit(X[:200], DIGITS.target[:200], classes=np.arange(10))
    before = model.coef_.copy()
    with pytest.raises(ValueError, match=message):
        model.partial_fit(*batch())
    np.testing.assert_array_equal(model.coef_, before)
    again = fl.LpClassifier(lam=0.01).partial_fit(X[:200], DIGITS.target[:200], classes=np.arange(10))
    for each in (model, again):
        each.partial_fit(X[200:300], DIGITS.target[200:300])
    np.testing.assert_array_equal(model.coef_, again.coef_)


@pytest.mark.parametrize("make", [fl.LpClassifier, fl.LpRegressor])
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_masked_entries_are_refused(make, method):
    y = DIGITS.target[TWO]
    first = {"classes": [0, 1]} if make is fl.LpClassifier and method == "partial_fit" else {}
    masked = np.ma.masked_greater(X[TWO], 1.0)
    for A, targets, weights, name in (
        (masked, y, None, "X"),
        (X[TWO], np.ma.masked_equal(y, 1), None, "y"),
        (X[TWO], y, np.ma.masked_equal(y + 1.0, 1.0), "sample_weight"),
    ):
        with pytest.raises(ValueError, match=f"{name} has a masked entry"):
            getattr(make(lam=0.1), method)(A, targets, sample_weight=weights, **first)
    with pytest.raises(ValueError, match="X has a masked entry"):
        make(lam=0.1).fit(X[TWO], y).predict(masked)
    getattr(make(lam=0.1), method)(np.ma.asarray(X[TWO]), np.ma.asarray(y), **first)  # nothing is masked


@pytest.mark.parametrize("make", [fl.LpClassifier, fl.LpRegressor])
def test_a_batch_without_weight_is_counted_and_changes_nothing(make):
    y, first = DIGITS.target[TWO], {} if make is fl.LpRegressor else {"classes": [0, 1]}
    with pytest.raises(ValueError, match="batch 1: sample_weight is zero everywhere; the first batch"):
        make(lam=0.1).partial_fit(X[TWO], y, **first, sample_weight=np.zeros(len(y)))
    model = make(lam=0.1).partial_fit(X[TWO], y, **first)
    before = model.coef_.copy()
    model.partial_fit(X[TWO], y, sample_weight=np.zeros(len(y)))
    np.testing.assert_array_equal(model.coef_, before)
    assert (model.n_batches_, model.n_samples_seen_) == (2, len(y))


@pytest.mark.parametrize("classes", [[1, -1, np.nan], np.array(["a", "b", None], dtype=object)])
def test_a_missing_label_is_no_class(classes):
    with pytest.raises(ValueError, match="classes has a missing label"):
        fl.LpClassifier(lam=0.1).partial_fit(X[:5], np.array([1, -1, 1, -1, 1]), classes=classes)


def test_the_estimator_for_labels_is_named():
    with pytest.raises(ValueError, match="is a classification loss; use LpClassifier"):
        fl.LpRegressor("hinge", lam=0.1).fit(X[TWO], DIGITS.target[TWO])


def test_class_weights_of_batches():
    y = DIGITS.target[TWO]
    model = learnt(fl.LpClassifier(lam=0.01, class_weight={1: 3.0}), X[TWO], y, classes=[0, 1])
    weighted = fl.LpClassifier(lam=0.01)
    for k in range(0, len(y), 50):
        part = slice(k, k + 50)
        weighted.partial_fit(X[TWO][part], y[part], [0, 1], np.where(y[part] == 1, 3.0, 1.0))
    np.testing.assert_array_equal(model.coef_, weighted.coef_)
    with pytest.raises(ValueError, match="balanced"):
        fl.LpClassifier(class_weight="balanced").partial_fit(X[TWO], y, classes=[0, 1])


@pytest.mark.parametrize("p", [2.0, 1.5])
def test_a_penalised_intercept_is_one_more_weight(p):
    """In fits, in batches, and in batches that go on from a fit."""
    y, wide = DIGITS.target[TWO], np.column_stack([X[TWO], np.full(TWO.sum(), 2.0)])
    options = {"p": p, "lam": 0.01, "tol": 1e-9, "batch_size": 5}
    inside = fl.LpClassifier(penalize_intercept=True, intercept_scaling=2.0, **options)
    explicit = fl.LpClassifier(fit_intercept=False, **options)

    def assert_same(rtol):
        both = np.append(inside.coef_[0], inside.intercept_ / 2.0)
        np.testing.assert_allclose(both, explicit.coef_[0], rtol=rtol, atol=rtol * np.abs(both).max())

    learnt(inside, X[TWO], y, classes=[0, 1])
    learnt(explicit, wide, y, classes=[0, 1])
    assert_same(1e-9)
    assert inside.regret_bound_ == pytest.approx(explicit.regret_bound_, rel=1e-9)
    certificate = fl.certify(inside, X[TWO], y)
    assert certificate.primal == pytest.approx(fl.certify(explicit, wide, y).primal, rel=1e-9)
    inside.fit(X[TWO], y)
    explicit.fit(wide, y)
    assert_same(1e-3)
    assert inside.certificate_.ok
    assert certificate.primal - inside.certificate_.primal <= certificate.gap
    inside.partial_fit(X[TWO][:20], y[:20])
    explicit.partial_fit(wide[:20], y[:20])
    assert_same(1e-3)


def test_a_penalised_intercept_of_a_regression():
    A = scale(DIABETES)
    options = {"lam": 0.1, "penalize_intercept": True}
    fitted, learnt_ = fl.LpRegressor(**options).fit(A, TARGETS), learnt(fl.LpRegressor(**options), A, TARGETS)
    assert fitted.intercept_ == pytest.approx(TARGETS.mean() / 1.1, rel=1e-3)  # centred columns
    assert learnt_.intercept_ == pytest.approx(fitted.intercept_, rel=0.3)
    with pytest.raises(ValueError, match=r"intercept_scaling=0\.5 would have no effect"):
        fl.LpRegressor(intercept_scaling=0.5).partial_fit(A, TARGETS)


def test_a_model_whose_first_batch_failed_is_not_fitted():
    y = DIGITS.target[TWO]
    model = fl.LpClassifier(lam=0.01)
    with pytest.raises(ValueError, match="batch 1: y has the label 1"):
        model.partial_fit(X[TWO], y, classes=[0, 7])
    with pytest.raises(NotFittedError):
        model.predict(X[TWO])
    assert vars(model) == vars(fl.LpClassifier(lam=0.01))
    assert model.partial_fit(X[TWO][:, :9], y, classes=[0, 1]).n_features_in_ == 9


@pytest.mark.parametrize("make", [fl.LpClassifier, fl.LpRegressor])
def test_an_error_of_a_batch_keeps_its_kind(make):
    y, first = DIGITS.target[TWO], {} if make is fl.LpRegressor else {"classes": [0, 1]}
    model = make(lam=0.01)
    with pytest.raises(TypeError, match="batch 1: "):
        model.partial_fit(X[TWO], y, **first, sample_weight={"a": 1})
    assert vars(model) == vars(make(lam=0.01))
    with pytest.raises(ValueError, match="batch 1: "):
        model.partial_fit(X[TWO], y, **first, sample_weight=[1.0])
    assert vars(model) == vars(make(lam=0.01))


@pytest.mark.parametrize("p", [2.0, 1.5, 1.05])
@pytest.mark.parametrize("lam", [0.1, 1e-3, "auto"])
def test_the_exponential_loss_is_learnt_with_an_intercept(p, lam):
    rng = np.random.default_rng(0)
    A = rng.normal(size=(600, 20))
    y = np.sign(A @ rng.normal(size=20) + rng.normal(size=600) + 1.0)
    model = learnt(fl.LpClassifier("exponential", p=p, lam=lam), A[:300], y[:300], 100, classes=[-1.0, 1.0])
    assert np.isfinite([*model.coef_[0], model.intercept_[0]]).all()
    assert model.score(A[300:], y[300:]) > (0.6 if lam == "auto" else 0.5)


@pytest.mark.parametrize("make", [fl.LpClassifier, fl.LpRegressor])
def test_a_batch_of_huge_numbers_is_named_and_changes_nothing(make):
    y, first = DIGITS.target[TWO], {} if make is fl.LpRegressor else {"classes": [0, 1]}
    loss = "squared" if make is fl.LpRegressor else "squared_hinge"
    model = make(loss, lam=0.01).partial_fit(X[TWO], y, **first)
    before = model.coef_.copy(), model.t_, model.n_batches_
    with np.errstate(all="ignore"), pytest.raises(ValueError, match="batch 2: the weights diverge"):
        model.partial_fit(1e200 * X[TWO], 1 - y)
    np.testing.assert_array_equal(model.coef_, before[0])
    assert (model.t_, model.n_batches_) == before[1:]
    assert model.partial_fit(X[TWO], y).n_batches_ == 2


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"p": 1.0}, ValueError, "p must be above 1"),
        ({"p": 3}, ValueError, "p must be above 1"),
        ({"lam": 0.0}, ValueError, "lam must be positive"),
        ({"lam": "best"}, TypeError, "lam must be a number"),
        ({"output": "random"}, ValueError, "output must be one of"),
        ({"batch_size": 0}, ValueError, "batch_size must be a whole number"),
        ({"solver": "nonsense"}, ValueError, "unknown solver 'nonsense'"),
        ({"solver": 3}, TypeError, "solver must be a name or an object"),
        ({"tol": "a"}, ValueError, "tol must be a number"),
        ({"max_iter": -3}, ValueError, "max_iter must be an integer"),
        ({"max_seconds": -1.0}, ValueError, "max_seconds must be a positive number"),
        ({"n_threads": "x"}, ValueError, "number of threads"),
        ({"warm_start": 7}, TypeError, "warm_start must be True or False"),
        ({"random_state": "abc"}, ValueError, "abc"),
        ({"progress": "yes"}, TypeError, "progress must be True or False"),
    ],
)
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_bad_parameters_are_refused(options, error, message, method):
    for model in (fl.LpClassifier(**options), fl.LpRegressor(**options)):
        given = {"classes": [0, 1]} if method == "partial_fit" and isinstance(model, fl.LpClassifier) else {}
        with pytest.raises(error, match=message):
            getattr(model, method)(X[TWO], DIGITS.target[TWO], **given)


def test_what_a_fit_has_proven_does_not_outlive_it():
    y = DIGITS.target[TWO]
    model = fl.LpClassifier(lam=0.01).fit(X[TWO], y)
    model.partial_fit(X[TWO], 1 - y)
    assert not hasattr(model, "certificate_")
    assert model.regret_bound_ == np.inf
    with pytest.raises(AttributeError, match=r"fl.certify\(model, X, y\)"):
        model.predict_certified(X[TWO])
    assert model.fit(X[TWO], y).certificate_.ok
    assert model.predict_certified(X[TWO])[1].any()


@pytest.mark.parametrize(
    "changed",
    [
        {"loss": "hinge"},
        {"p": 1.5},
        {"lam": 1.0},
        {"lam": "auto"},
        {"fit_intercept": False},
        {"batch_size": 7},
        {"penalize_intercept": True},
    ],
)
def test_parameters_cannot_change_within_a_stream(changed):
    y = DIGITS.target[TWO]
    model = fl.LpClassifier(lam=0.01).partial_fit(X[TWO], y, classes=[0, 1])
    with pytest.raises(ValueError, match="has changed since the first batch"):
        model.set_params(**changed).partial_fit(X[TWO], y)


def test_a_chosen_lam_is_not_replaced_within_a_stream():
    y = DIGITS.target[TWO]
    model = fl.LpClassifier().partial_fit(X[TWO], y, classes=[0, 1])
    with pytest.raises(ValueError, match="batch 2: lam has changed since the first batch"):
        model.set_params(lam=0.5).partial_fit(X[TWO], y)
    assert model.set_params(lam="auto").partial_fit(X[TWO], y).n_batches_ == 2


def test_lam_may_change_between_a_fit_and_a_stream_but_is_not_chosen_there():
    y = DIGITS.target[TWO]
    for lam in (0.5, "auto"):
        model = fl.LpClassifier(lam=lam).fit(X[TWO], y)
        assert model.set_params(lam=0.1).partial_fit(X[TWO], y).lam_ == 0.1
    model = fl.LpClassifier(lam=0.5).fit(X[TWO], y)
    with pytest.raises(ValueError, match=r'lam="auto" after a fit with lam=0\.5: call fit'):
        model.set_params(lam="auto").partial_fit(X[TWO], y)
    model = fl.LpClassifier().fit(X[TWO], y)
    lam = model.lam_
    assert model.partial_fit(X[TWO], y).partial_fit(X[TWO], y).lam_ == lam


def test_progress_of_batches_is_shown(capsys):
    y = DIGITS.target[TWO]
    model = learnt(fl.LpClassifier(lam=0.01), X[TWO], y, 200, classes=[0, 1])
    assert capsys.readouterr().out == ""
    model.set_params(progress=True).partial_fit(X[TWO], y)
    shown = capsys.readouterr().out
    assert "batch 3" in shown
    assert f"{model.n_samples_seen_} samples, progressive loss {model.progressive_loss_:.4g}" in shown


def test_a_fit_that_fails_leaves_the_stream():
    y = DIGITS.target[TWO]
    model = fl.LpClassifier(lam=0.01).partial_fit(X[TWO], y, classes=[0, 1])
    with pytest.raises(ValueError, match="inconsistent"):
        model.fit(X[TWO], y[:-1])
    steps = model.t_
    assert model.partial_fit(X[TWO][:1], y[:1]).t_ == steps + 1


@pytest.mark.parametrize("make", [fl.LpClassifier, fl.LpRegressor])
@pytest.mark.parametrize("lam", [0.01, "auto"])
@pytest.mark.parametrize("before", ["nothing", "stream", "fit"])
@pytest.mark.parametrize(
    ("options", "weight"),
    [({}, -1.0), ({"solver": "nonsense"}, 1.0), ({"tol": -1.0}, 1.0), ({"max_iter": 0}, 1.0)],
)
def test_a_fit_that_fails_changes_nothing(make, lam, before, options, weight):
    y, first = DIGITS.target[TWO], {} if make is fl.LpRegressor else {"classes": [0, 1]}
    model, plain = make(lam=lam), make(lam=lam)
    for each in (model, plain):
        if before == "stream":
            learnt(each, X[TWO], y, **first)
        elif before == "fit":
            each.fit(X[TWO], y)
    known = dict(vars(model))
    model.set_params(**options)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises((ValueError, fl.NotCertifiedWarning)):
            model.fit(X[TWO][:, ::-1] ** 3, y, np.full(len(y), weight))
    model.set_params(**{name: plain.get_params()[name] for name in options})
    assert vars(model).keys() == known.keys()
    assert all(vars(model)[name] is known[name] for name in known if name.endswith("_"))
    for each in (model, plain):
        each.partial_fit(X[TWO][:20], y[:20], **first)
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    assert model.lam_ == plain.lam_


def test_class_weights_are_checked_as_in_a_fit():
    y = DIGITS.target[TWO]
    for wrong in ({0: 1.0, 7: 5.0}, {0: -1.0}, "none"):
        for call in ("fit", "partial_fit"):
            model = fl.LpClassifier(lam=0.01, class_weight=wrong)
            with pytest.raises(ValueError, match=r"class_weight|weight"):
                getattr(model, call)(X[TWO], y, **({"classes": [0, 1]} if call == "partial_fit" else {}))


def test_a_regression_is_good_by_default():
    A = scale(DIABETES)
    model, best = learnt(fl.LpRegressor(), A, TARGETS), fl.LpRegressor(lam=0.1).fit(A, TARGETS)
    assert best.score(A, TARGETS) - model.score(A, TARGETS) < 0.06
