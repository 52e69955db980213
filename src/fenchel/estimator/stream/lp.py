"""Estimators with squared p-norms, which also learn from streams: LpClassifier and LpRegressor."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import assert_all_finite, check_consistent_length, validate_data

from fenchel.data.convert import require_unmasked
from fenchel.data.storage import usable_threads
from fenchel.data.typing import Array, Mask, MatrixLike, Vector, VectorLike
from fenchel.estimator.base import (
    FitParameters,
    InterceptParameters,
    LinearEstimator,
    Targets,
    dense_rows,
    sample_weights,
)
from fenchel.estimator.classification import (
    LogisticProbabilities,
    class_weights,
    encoded,
    fit_classes,
    one_label_each,
    with_class_weights,
)
from fenchel.estimator.documentation import documented
from fenchel.estimator.names import resolve_loss, resolve_regression_loss
from fenchel.estimator.objective import Objective, number, one_of, penalised_constant, positive
from fenchel.estimator.regression import Regression, fit_targets
from fenchel.problem.checks import require_count, require_flag
from fenchel.problem.losses import Loss
from fenchel.problem.penalties import L2, LpSquared, Penalty
from fenchel.solver.learner import Learner
from fenchel.solver.progress import Bar
from fenchel.solver.solve import Request
from fenchel.steps.choose import PROBLEM_SOLVERS, require_solver
from fenchel.steps.stochastic.choice import LamChoice

#: The lam with which a stream begins if a family of them is tried.
ANY_LAM = 1.0


@dataclass(eq=False, repr=False, kw_only=True)
class StreamParameters(InterceptParameters, FitParameters):
    """Parameters of both estimators."""

    batch_size: int | str = "auto"
    output: str = "average"
    progress: bool = False


class StreamModel(LinearEstimator):
    """Attributes and functions of estimators that learn from streams."""

    p: float
    lam: float | str
    batch_size: int | str
    output: str
    progress: bool
    max_seconds: float | None
    n_threads: int | None
    warm_start: bool
    penalize_intercept: bool
    intercept_scaling: float
    lam_: float
    lam_choice_: LamChoice | None
    t_: int
    _fitted_samples: int
    _begun_with: float | str
    n_samples_seen_: int
    n_batches_: int
    progressive_loss_: float
    regret_bound_: float
    stream_: Learner

    def _check_parameters(self) -> None:
        self._penalty(ANY_LAM)
        one_of("output", self.output, ("average", "last"))
        require_flag(self.fit_intercept, "fit_intercept")
        require_flag(self.penalize_intercept, "penalize_intercept")
        self._constant()
        if self.batch_size != "auto":
            require_count(self.batch_size, "batch_size", 'samples, or "auto"')
        if not _is_auto(self.lam):
            positive("lam", self.lam, 'use a small one such as 1e-8, or lam="auto"')
        Request(
            tol=self.tol, max_iter=self.max_iter, max_seconds=self.max_seconds, progress=self.progress
        )  # raises for invalid ones
        require_solver(self.solver, PROBLEM_SOLVERS)
        usable_threads(1, self.n_threads)
        require_flag(self.warm_start, "warm_start")
        check_random_state(self.random_state)

    def _penalty(self, lam: float, _total: float = 0.0) -> Penalty:
        p = number("p", self.p)
        if not 1.0 < p <= 2.0:
            raise ValueError(f"p must be above 1 and at most 2, got {p!r}")
        return L2(lam) if p == 2.0 else LpSquared(lam, p)

    @abstractmethod
    def _given_loss(self) -> Loss:
        """The loss by its name, or the object."""

    def _objective(self) -> Objective:
        lam = self.lam_ if _is_auto(self.lam) else float(self.lam)
        return Objective(self._given_loss(), partial(self._penalty, lam), self.fit_intercept, self._constant())

    def _constant(self) -> float:
        return penalised_constant(self.fit_intercept, self.penalize_intercept, self.intercept_scaling)

    def _learner(self, classes: Vector | None, automatic: bool) -> Learner:
        lam = ANY_LAM if automatic else self.lam_ if _is_auto(self.lam) else float(self.lam)
        penalty, constant = self._penalty(lam), self._constant()
        free = bool(self.fit_intercept) and not constant
        return Learner(self._given_loss(), penalty, automatic, free, classes, self.batch_size, constant)

    def _read(self, X: MatrixLike, y: VectorLike) -> tuple[Any, Array]:
        """A batch as arrays. What `Learner` checks, finite features above all, is left to it."""
        require_unmasked(X=X, y=y)
        checks = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "reset": "coef_" not in self.__dict__}
        if not (isinstance(y, np.ndarray) and y.ndim == 1 and y.dtype.kind in "biufU"):
            features, targets = validate_data(self, X, y, y_numeric=not is_classifier(self), **checks)
            return features, targets
        features = validate_data(self, X, ensure_all_finite=False, **checks)
        check_consistent_length(features, y)
        return features, y

    def _learn(self, X: MatrixLike, y: Vector, weights: Vector | None, classes: Vector | None) -> None:
        """A batch, with the state of the batches before it."""
        learner: Learner | None = self.__dict__.get("stream_")
        if learner is not None:
            self._require_same(learner)
        else:
            fitted = "coef_" in self.__dict__
            if fitted and _is_auto(self.lam) and not _is_auto(self._begun_with):
                raise ValueError(f'lam="auto" after a fit with lam={self._begun_with!r}: call fit, or give a number')
            learner = self._learner(classes, _is_auto(self.lam) and not fitted)
            if fitted:  # go on from a fit, which counts as one pass over its samples
                w, b = (
                    np.asarray(part, dtype=np.float64) for part in (dense_rows(self.coef_), np.ravel(self.intercept_))
                )
                if learner.constant:
                    w, b = np.column_stack([w, b / learner.constant]), np.zeros_like(b)
                learner.begin_at(w, b, self._fitted_samples)
            self._begun_with = self.lam
        try:
            learner.learn(X, y, weights)
        except ValueError:
            assert_all_finite(X, estimator_name=type(self).__name__, input_name="X")  # in scikit-learn's words
            raise
        if not learner.models:
            raise ValueError("sample_weight is zero everywhere; the first batch needs a sample with a positive weight")
        self.stream_ = learner
        w, b = learner.model(self.output)
        self.coef_, self.intercept_ = w, b
        self.lam_, self.t_ = learner.lam, learner.n_steps
        if learner.automatic or not _is_auto(self.lam):  # else a fit before has chosen it
            self.lam_choice_ = learner.choice if learner.automatic else None
        self.n_samples_seen_, self.n_batches_ = learner.n_samples, learner.n_batches
        self.progressive_loss_, self.regret_bound_ = learner.progressive_loss, learner.regret_bound
        self.n_iter_ = 1
        self.dual_coef_ = np.zeros((len(w), 0))  # there are no multipliers: `certify` finds some
        for name in ("certificate_", "trace_"):  # of a fit before
            self.__dict__.pop(name, None)

    def _require_same(self, learner: Learner) -> None:
        """Raise if a parameter has changed since the first batch."""
        now = self._learner(learner.classes, learner.automatic)
        changed = [
            name
            for name in ("loss", "intercept", "constant", "batch_size")
            if getattr(now, name) != getattr(learner, name)
        ]
        changed += ["lam"] if self.lam != self._begun_with else []
        changed += ["p"] if now.penalty != learner.penalty else []
        if changed:
            raise ValueError(
                f"{changed[0]} has changed since the first batch; call fit, or clone the model, to begin anew"
            )

    def _forget(self) -> None:
        """Before a fit: what was learnt from a stream counts no more."""
        for name in ("stream_", "t_", "n_samples_seen_", "n_batches_", "progressive_loss_", "regret_bound_"):
            self.__dict__.pop(name, None)

    def _choose_lam(self, X: MatrixLike, y: Vector, weights: Vector, classes: Vector | None) -> None:
        """lam_: as given, or chosen in one pass over the samples in random order."""
        self._begun_with = self.lam
        if not _is_auto(self.lam):
            self.lam_, self.lam_choice_ = float(self.lam), None
            return
        order = check_random_state(self.random_state if self.random_state is not None else 0).permutation(len(y))
        learner = self._learner(classes, automatic=True)
        learner.learn(X[order], y[order], weights[order])  # type: ignore[index]
        self.lam_, self.lam_choice_ = learner.lam, learner.choice

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """If this fails, the model is what it was before."""
        before = dict(self.__dict__)
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    @contextmanager
    def _one_batch(self) -> Iterator[None]:
        """If learning a batch fails, the model is what it was before, and the error has the number of the batch."""
        number_of_batch = int(self.__dict__.get("n_batches_", 0)) + 1
        try:
            with self._all_or_nothing(), Bar(f"batch {number_of_batch}", self.progress) as bar:
                yield
                bar.show(1.0, f"{self.n_samples_seen_} samples, progressive loss {self.progressive_loss_:.4g}")
        except (ValueError, TypeError, OverflowError) as error:
            kind = ValueError if isinstance(error, ValueError | OverflowError) else TypeError
            raise kind(f"batch {number_of_batch}: {error}") from error


def _all_labels(classes: VectorLike | None) -> Array:
    """The labels of `classes`, sorted; each must be a label."""
    labels = np.asarray(classes)
    missing = [label for label in labels.ravel().tolist() if label is None or label != label]
    if missing:
        raise ValueError(f"classes has a missing label ({missing[0]})")
    return np.unique(labels)


def _is_one_of(labels: Array, known: Array) -> Mask:
    """Which labels are among the known ones, which are sorted."""
    if not (labels.dtype.kind in "biuf" and known.dtype.kind in "biuf"):
        return np.isin(labels, known)
    places = np.searchsorted(known, labels)
    return np.asarray(known[np.minimum(places, len(known) - 1)] == labels)


def _is_auto(lam: object) -> bool:
    return isinstance(lam, str) and lam == "auto"


@documented("classes")
class LpClassifier(StreamParameters, StreamModel, LogisticProbabilities):
    """A linear classifier with the penalty lam/2 |w|_p^2, from all data at once or from a stream.

    `fit` minimises the weighted mean loss plus the penalty until the certified gap is within tol. `partial_fit` learns
    each sample once, by the Primal Gradient Solver. One-vs-rest for more than two classes. The intercept is not
    penalised unless `penalize_intercept` is True: then it is inside the norm.

    `batch_size` and `output` are those of `partial_fit`; `batch_size` also of the pass in which `fit` chooses lam.
    `solver`, `tol`, `max_iter`, `max_seconds`, `warm_start`, `random_state` and `n_threads` are those of `fit`, only
    checked in `partial_fit`: it learns each batch once, in the given order, whatever they are, as in scikit-learn.

    Parameters
    ----------
    loss : str or Loss, default "logistic"
        "hinge", "logistic", ... or an object such as SmoothedHinge(0.5).
    p : float, default 2.0
        Above 1, and at most 2. Near 1 most weights are nearly zero.
    lam : float or "auto", default "auto"
        Weight of the penalty. "auto": the best of six by progressive validation, in one pass over the samples.
    batch_size : int or "auto", default "auto"
        Samples per gradient step of `partial_fit`; "auto" is 1 for p = 2.
    output : {"average", "last"}, default "average"
        The model of `partial_fit`: the mean of all iterates with weights t + 1, or the last one.

    Attributes
    ----------
    lam_ : float
        The weight of the penalty, as given or as chosen.
    lam_choice_ : LamChoice or None
        For lam="auto": recent errors and losses for each lam that was tried, and which one was taken;
        `print(model.lam_choice_)` says why. Of the last `fit` or `partial_fit` that chose.
    n_samples_seen_, n_batches_, t_ : int
        Samples, batches and gradient steps of `partial_fit`.
    progressive_loss_ : float
        Mean loss of the samples of `partial_fit`, each by the model before it was learnt.
    regret_bound_ : float
        A bound on the mean objective of these models above that of the best one; infinite with an intercept, if
        `partial_fit` goes on from a `fit`, or after a second batch for a loss without a Lipschitz constant.
    certificate_, trace_
        After `fit` only; `fl.certify(model, X, y)` certifies a model of `partial_fit` on any samples.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from fenchel import LpClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LpClassifier(p=1.5, lam=0.01).fit(scale(X), y)
    >>> model.certificate_.ok
    True
    """

    loss: str | Loss = "logistic"
    p: float = 2.0
    lam: float | str = "auto"
    _: KW_ONLY

    def _given_loss(self) -> Loss:
        return resolve_loss(self.loss)

    def fit(self, X: MatrixLike, y: VectorLike, sample_weight: VectorLike | None = None) -> Self:
        """Fit to the labels y, to the tolerance; a weight of 2 repeats the row. If it fails, nothing changes."""
        with self._all_or_nothing():
            self._fit(X, y, sample_weight)
        return self

    def _fit(self, X: MatrixLike, y: VectorLike, sample_weight: VectorLike | None) -> None:
        features, codes = encoded(self, X, y)
        self._forget()
        classes = self._codes()
        weights = sample_weights(sample_weight, features)
        weighted = with_class_weights(self, codes, weights) if _is_auto(self.lam) else weights
        targets = np.where(codes == 1, 1.0, -1.0) if classes is None else codes.astype(np.float64)
        self._choose_lam(features, targets, weighted, classes)
        fit_classes(self, X, y, sample_weight)
        self._fitted_samples = len(codes)

    def partial_fit(
        self,
        X: MatrixLike,
        y: VectorLike,
        classes: VectorLike | None = None,
        sample_weight: VectorLike | None = None,
    ) -> Self:
        """Predict a batch, then learn it; `classes` are all labels, needed in the first call."""
        self._check_parameters()
        with self._one_batch():
            self._partial_fit(X, y, classes, sample_weight)
        return self

    def _partial_fit(
        self, X: MatrixLike, y: VectorLike, classes: VectorLike | None, sample_weight: VectorLike | None
    ) -> None:
        one_label_each(y)
        first = "coef_" not in self.__dict__
        features, labels = self._read(X, y)
        if first:  # later ones are compared with the classes
            check_classification_targets(labels)
        if first and classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        known = _all_labels(classes) if first else self.classes_
        if not first and classes is not None and not np.array_equal(known, np.unique(np.asarray(classes))):
            raise ValueError(f"classes={classes!r} is not the same as on last call to partial_fit, was: {known!r}")
        if len(known) < 2:
            raise ValueError(f"a classifier needs two classes; got {len(known)} class")
        is_known = _is_one_of(labels, known)
        if not is_known.all():
            label = labels[~is_known][0]
            raise ValueError(f"y has the label {label!s}, which is not one of the classes given at the first call")
        self.classes_ = known
        codes = np.searchsorted(self.classes_, labels).astype(np.float64)
        weights = None if sample_weight is None else sample_weights(sample_weight, features, may_vanish=True)
        if self.class_weight is not None:
            factors = self._class_factors()[codes.astype(np.intp)]
            weights = factors if weights is None else weights * factors
        if len(self.classes_) == 2:
            codes = 2.0 * codes - 1.0
        self._learn(features, codes, weights, self._codes())

    def _codes(self) -> Vector | None:
        """Of the classes, if each has a model of its own."""
        return None if len(self.classes_) == 2 else np.arange(len(self.classes_), dtype=np.float64)

    def _class_factors(self) -> Vector:
        if isinstance(self.class_weight, str) and self.class_weight == "balanced":
            raise ValueError('class_weight="balanced" needs all samples at once; pass a dict of weights to partial_fit')
        every = np.arange(len(self.classes_))
        return class_weights(self.class_weight, self.classes_, every, np.ones(len(every)))

    def predict_certified(self, X: MatrixLike) -> tuple[Targets, Mask]:
        """Labels, and whether the exact optimum of the objective provably predicts the same ones; after `fit` only."""
        if "stream_" in self.__dict__:
            raise AttributeError("a model of partial_fit has no certificate; fl.certify(model, X, y).labels(X_new) has")
        return super().predict_certified(X)


@documented("target")
class LpRegressor(StreamParameters, StreamModel, Regression):
    """A linear regression with the penalty lam/2 |w|_p^2, from all data at once or from a stream.

    `fit` minimises the weighted mean loss plus the penalty until the certified gap is within tol. `partial_fit` learns
    each sample once, by the Primal Gradient Solver. The intercept is not penalised unless `penalize_intercept` is True.

    `batch_size` and `output` are those of `partial_fit`; `batch_size` also of the pass in which `fit` chooses lam.
    `solver`, `tol`, `max_iter`, `max_seconds`, `warm_start`, `random_state` and `n_threads` are those of `fit`, only
    checked in `partial_fit`: it learns each batch once, in the given order, whatever they are, as in scikit-learn.

    Parameters
    ----------
    loss : str or Loss, default "squared"
        "squared", "absolute", "huber", ... or an object such as Pinball(0.9).
    p, lam, batch_size, output
        As in `LpClassifier`.

    Attributes
    ----------
    lam_, lam_choice_, n_samples_seen_, n_batches_, t_, progressive_loss_, regret_bound_
        As in `LpClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.preprocessing import scale
    >>> from fenchel import LpRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = LpRegressor(lam=0.1).partial_fit(scale(X), y)
    >>> model.n_samples_seen_
    442
    """

    loss: str | Loss = "squared"
    p: float = 2.0
    lam: float | str = "auto"
    _: KW_ONLY

    def _given_loss(self) -> Loss:
        return resolve_regression_loss(self.loss, "LpClassifier")

    def fit(self, X: MatrixLike, y: VectorLike, sample_weight: VectorLike | None = None) -> Self:
        """Fit to the targets y, to the tolerance; a weight of 2 repeats the row. If it fails, nothing changes."""
        self._check_parameters()
        with self._all_or_nothing():
            features, targets = validate_data(
                self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], y_numeric=True
            )
            targets = np.asarray(targets, dtype=np.float64)
            self._forget()
            self._choose_lam(features, targets, sample_weights(sample_weight, features), None)
            fit_targets(self, X, y, sample_weight)
            self._fitted_samples = len(targets)
        return self

    def partial_fit(self, X: MatrixLike, y: VectorLike, sample_weight: VectorLike | None = None) -> Self:
        """Predict a batch, then learn it."""
        self._check_parameters()
        with self._one_batch():
            features, targets = self._read(X, y)
            weights = None if sample_weight is None else sample_weights(sample_weight, features, may_vanish=True)
            self._learn(features, targets.astype(np.float64, copy=False), weights, None)
            self.coef_, self.intercept_ = self.coef_[0], float(self.intercept_[0])
        return self
