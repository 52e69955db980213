"""Searches whose folds share X: they choose what searches on copies would, whatever the folds are."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.linear_model
from sklearn.base import clone
from sklearn.model_selection import KFold, StratifiedKFold

import fenchel as fl
from fenchel.data import samples
from fenchel.estimator.search import cross_validation
from fenchel.steps.working_set import moments, sparse_path

WIDE = samples.make_regression(45, 600, noise=1.0, random_state=0)
NARROW = samples.make_regression(90, 7, noise=1.0, random_state=1)
LABELS = np.where(WIDE.y > 0, "up", "down")
MODELS = [
    fl.LassoCV(alphas=8, cv=3, eps=0.1, tol=1e-7),
    fl.ElasticNetCV(alphas=5, cv=3, eps=0.1, l1_ratio=[0.5, 1.0], tol=1e-7),
    fl.SparseLogisticRegressionCV(alphas=6, cv=3, eps=0.2, tol=1e-7),
]
every_model = pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)


def targets_for(model, data):
    y = data.y
    return np.where(y > 0, "up", "down") if hasattr(model, "predict_proba") else y


def errors_of(model):
    return getattr(model, "score_path_", getattr(model, "mse_path_", None))


def on_copies(model, X, y, weights=None):
    """The same search where no fold is quicker on X as it is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cross_validation, "shared_design", lambda problem, **options: None)
        return clone(model).fit(X, y, weights)


@pytest.mark.parametrize("data", [WIDE, NARROW], ids=["wide", "narrow"])
@pytest.mark.parametrize("kind", ["plain", "weighted", "heavy", "Fortran", "float32", "zeros"])
@every_model
def test_they_choose_what_copies_choose(model, kind, data):
    rng = np.random.default_rng(0)
    n = len(data.y)
    weights = {
        "weighted": rng.uniform(0.5, 2.0, n),
        "heavy": np.exp(3.0 * rng.normal(size=n)),
        "zeros": (np.arange(n) % 4 > 0).astype(float),
    }.get(kind)
    X = {"Fortran": np.asfortranarray, "float32": lambda X: X.astype(np.float32)}.get(kind, np.asarray)(data.X)
    y = targets_for(model, data)
    ours, theirs = clone(model).fit(X, y, weights), on_copies(model, X, y, weights)
    np.testing.assert_allclose(errors_of(ours), errors_of(theirs), rtol=2e-3, atol=1e-6)
    assert ours.alpha_ == theirs.alpha_
    assert ours.certificate_.primal == pytest.approx(theirs.certificate_.primal, rel=2e-7)
    assert fl.certify(ours, X, y, sample_weight=weights).relative_gap < 1.1e-7


@pytest.mark.parametrize("name", ["LassoCV", "ElasticNetCV"])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_they_choose_what_scikit_learn_chooses(name, fit_intercept):
    parameters = {"alphas": 10, "cv": 4, "eps": 0.1, "fit_intercept": fit_intercept}
    ours = getattr(fl, name)(**parameters, tol=1e-8).fit(WIDE.X, WIDE.y)
    theirs = getattr(sklearn.linear_model, name)(**parameters, tol=1e-10, max_iter=10**6).fit(WIDE.X, WIDE.y)
    assert ours.alpha_ == pytest.approx(theirs.alpha_, rel=1e-10)
    np.testing.assert_allclose(ours.mse_path_, theirs.mse_path_, rtol=1e-3)


@pytest.mark.parametrize("data", [WIDE, NARROW], ids=["wide", "narrow"])
@every_model
def test_folds_may_be_anything_that_takes_samples(model, data):
    """Masks, samples that are drawn more than once, folds that are no parts, indices from the end."""
    n, rng = len(data.y), np.random.default_rng(3)
    mask = np.arange(n) % 3 > 0
    drawn = [rng.integers(0, n, n) for _ in range(2)]
    folds = [
        (mask, ~mask),
        *((some, np.setdiff1d(np.arange(n), some)) for some in drawn),
        (np.arange(-n, -5), [-1, -2]),
    ]
    y = targets_for(model, data)
    ours = clone(model).set_params(cv=folds).fit(data.X, y)
    theirs = on_copies(clone(model).set_params(cv=folds), data.X, y)
    np.testing.assert_allclose(errors_of(ours), errors_of(theirs), rtol=2e-3, atol=1e-6)


@every_model
def test_side_by_side_they_give_the_same_bits(model):
    y = targets_for(model, WIDE)
    one, other = (clone(model).set_params(n_jobs=n_jobs).fit(WIDE.X, y) for n_jobs in (None, 3))
    np.testing.assert_array_equal(errors_of(one), errors_of(other))
    np.testing.assert_array_equal(one.coef_, other.coef_)


@every_model
def test_all_folds_use_one_matrix_in_sixteen_bits(model, monkeypatch):
    made, used = [], []
    build, screen = sparse_path.kernels.int16_screen, sparse_path._screen
    monkeypatch.setattr(sparse_path.kernels, "int16_screen", lambda *args: made.append(build(*args)) or made[-1])

    def watched(problem, *args):
        found = screen(problem, *args)
        if problem.design.fold_cache is not None and not problem.design.fold_cache.over:
            used.append(found[0])
        return found

    monkeypatch.setattr(sparse_path, "_screen", watched)
    fitted = clone(model).fit(WIDE.X, targets_for(model, WIDE))
    assert len(used) >= 3
    # one for all folds; the last fit, for which X may have changed since, has its own
    assert len(made) <= 2
    assert all(one is made[0] for one in used)
    assert fitted.certificate_.ok


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("model", [fl.LassoCV(alphas=5, cv=4), fl.GroupLassoCV(2, alphas=5, cv=4)], ids=str)
def test_few_weights_form_one_gram_matrix(model, form, monkeypatch):
    formed, some = [], []
    whole, part = moments.known_gram, moments.gram_of_some
    monkeypatch.setattr(moments, "known_gram", lambda *args: formed.append(1) or whole(*args))
    monkeypatch.setattr(moments, "gram_of_some", lambda *args: some.append(len(args[1])) or part(*args))
    monkeypatch.setattr(moments, "gram_matrix", lambda *args: pytest.fail("a fold has formed its own"))
    assert clone(model).fit(form(NARROW.X[:, :6]), NARROW.y).certificate_.ok
    assert len(formed) == 1
    assert sum(some) == len(NARROW.y)


@pytest.mark.parametrize("data", [WIDE, NARROW], ids=["wide", "narrow"])
def test_a_search_ends_its_fold_cache(data, monkeypatch):
    shared, prepare = [], cross_validation.shared_design
    monkeypatch.setattr(
        cross_validation,
        "shared_design",
        lambda problem, **options: shared.append(prepare(problem, **options)) or shared[-1],
    )
    fl.LassoCV(alphas=4, cv=3).fit(data.X, data.y)
    with pytest.raises(IndexError):
        fl.LassoCV(alphas=4, cv=[(np.arange(20), [1000])]).fit(data.X, data.y)
    assert [design.fold_cache.over for design in shared] == [True, True]
    assert not any(design.fold_cache.screens or design.fold_cache.gram for design in shared)


@pytest.mark.parametrize("tol", [1e-4, 1e-13])
def test_narrow_folds_side_by_side_give_the_same_bits(tol):
    """Also where some fits need the solver, which keeps Gram matrices of its own."""
    X = NARROW.X + 50.0
    model = fl.LassoCV(alphas=8, cv=5, tol=tol, max_iter=50)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fl.NotCertifiedWarning)
        one, other = (clone(model).set_params(n_jobs=n_jobs).fit(X, NARROW.y) for n_jobs in (None, 3))
    np.testing.assert_array_equal(one.mse_path_, other.mse_path_)


def test_folds_that_take_few_samples_are_copied(monkeypatch):
    monkeypatch.setattr(moments, "gram_of_some", lambda *args: pytest.fail("most samples are left out"))
    folds = [(np.arange(20), np.arange(20, 90)), (np.arange(50, 70), np.arange(50))]
    ours = fl.LassoCV(alphas=4, cv=folds).fit(NARROW.X, NARROW.y)
    np.testing.assert_allclose(ours.mse_path_, on_copies(ours, NARROW.X, NARROW.y).mse_path_)


@pytest.mark.parametrize("data", [WIDE, NARROW], ids=["wide", "narrow"])
def test_empty_folds_are_errors(data):
    n = len(data.y)
    with pytest.raises(ValueError, match="training samples of a fold have weight zero"):
        fl.LassoCV(alphas=3, cv=[([], np.arange(n))]).fit(data.X, data.y)
    with pytest.raises(ValueError, match="a fold has no test samples"):
        fl.LassoCV(alphas=3, cv=[(np.arange(n), [])]).fit(data.X, data.y)


def test_more_than_a_few_samples_follow_wide_paths_too():
    data = samples.make_regression(620, 700, noise=1.0, random_state=2)
    ours = fl.LassoCV(alphas=6, cv=3, eps=0.1, tol=1e-7).fit(data.X, data.y)
    np.testing.assert_allclose(ours.mse_path_, on_copies(ours, data.X, data.y).mse_path_, rtol=1e-4)
    assert ours.certificate_.ok


def test_classes_of_folds_by_weights():
    """A class that no sample outside of a fold has gives a warning on X as it is, too."""
    order = np.argsort(LABELS)
    with pytest.warns(UserWarning, match="fold 0 has no training sample of the class a; fold 1 .* the class b"):
        fl.SparseLogisticRegressionCV(cv=KFold(2)).fit(WIDE.X[order][8:38], np.repeat(["a", "b"], 15))
    three = np.array(["a", "b", "c"])[np.arange(45) % 3]
    model = fl.SparseLogisticRegressionCV(alphas=4, cv=StratifiedKFold(3), eps=0.3)
    ours, theirs = clone(model).fit(WIDE.X, three), on_copies(model, WIDE.X, three)
    np.testing.assert_allclose(ours.score_path_, theirs.score_path_, rtol=1e-3)
