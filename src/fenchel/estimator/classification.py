"""The base of all classifiers: labels, class weights, scores, and proven labels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from fenchel.data import Design, encode_labels
from fenchel.data.typing import Mask, Matrix, MatrixLike, Vector, VectorLike
from fenchel.estimator.base import (
    ClassWeight,
    Features,
    LinearEstimator,
    LinearPredictor,
    Problems,
    Targets,
    checked_features,
    fit_problems,
    sample_weights,
    validated,
    warn_caller,
)
from fenchel.estimator.exchange.callbacks import watched
from fenchel.estimator.names import resolve_loss
from fenchel.estimator.objective import Objective
from fenchel.problem import MulticlassProblem, Problem
from fenchel.problem.losses import Logistic, Loss, MulticlassLoss
from fenchel.solver import Result

Codes = NDArray[np.intp]


class LabelScores(ClassifierMixin, LinearPredictor):  # type: ignore[misc]
    """Labels from scores: one score for two classes, else one for each class."""

    def decision_function(self, X: MatrixLike) -> Matrix:
        """Scores: one per row for two classes, else one per class."""
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: MatrixLike) -> Targets:
        """The most likely labels."""
        scores = self.decision_function(X)
        codes = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[codes])


@dataclass(eq=False, repr=False, kw_only=True)
class Classification(LabelScores, LinearEstimator):
    """Classifiers for two or more labels of any type."""

    class_weight: ClassWeight = None

    def fit(self, X: MatrixLike, y: VectorLike, sample_weight: VectorLike | None = None) -> Self:
        """Fit to the labels y; a weight of 2 repeats the row."""
        fit_classes(self, X, y, sample_weight)
        return self

    def predict_certified(self, X: MatrixLike) -> tuple[Targets, Mask]:
        """Labels, and whether the exact optimum of the objective provably predicts the same ones.

        None is proven with an L1 penalty, or for several classes in one problem with unpenalised intercepts: there is
        no bound on the distance of the weights, or of the intercepts, from the optimum.
        """
        labels, proven = self.certificate_.labels(checked_features(self, X))
        codes = (labels > 0).astype(np.intp) if len(self.classes_) == 2 else labels
        return np.asarray(self.classes_[codes]), proven


def _is_logistic(self: LogisticProbabilities) -> bool:
    if isinstance(resolve_loss(self.loss), Logistic):
        return True
    raise AttributeError(f"probabilities need the logistic loss; this model has {self.loss!r}")


class LogisticProbabilities(Classification):
    """Classifiers with a loss of choice, which have probabilities if it is the logistic one."""

    loss: str | Loss

    @available_if(_is_logistic)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: MatrixLike) -> Matrix:
        """Probabilities of the classes; for more than two, one-vs-rest probabilities normalised to sum 1."""
        return one_against_rest_probabilities(self.decision_function(X))

    @available_if(_is_logistic)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: MatrixLike) -> Matrix:
        """Logarithms of the probabilities."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))


def fit_classes(model: Classification, X: MatrixLike, y: VectorLike, sample_weight: VectorLike | None) -> list[Result]:
    """Fit the problems of the classes, and set the attributes of the model."""
    features, codes = encoded(model, X, y)
    problems = class_problems(model, features, codes, sample_weight)
    warn_empty(model.classes_, problems)
    return watched(model, X, y, sample_weight, len(problems), partial(fit_problems, model, problems))


def encoded(model: LabelScores, X: MatrixLike, y: VectorLike) -> tuple[Features, Codes]:
    """Checked features, and the codes of the labels in `classes_`, which are set."""
    one_label_each(y)
    features, labels = validated(model, X, y)
    whole = labels.dtype.kind in "iu"  # these are labels; scikit-learn's check takes a tenth of a small fit
    if not whole:
        check_classification_targets(labels)
    model.classes_, codes = encode_labels(labels)
    if whole and 2 * len(model.classes_) > len(labels):
        check_classification_targets(labels)
    return features, codes


def class_problems(model: Classification, X: MatrixLike, codes: Codes, sample_weight: VectorLike | None) -> Problems:
    """One problem for two classes; for more, one joint problem, or one for each class against the rest."""
    objective, classes = model._objective(), model.classes_
    weights = sample_weights(sample_weight, X)
    if objective.weigh_rest or len(classes) == 2 or isinstance(objective.loss, MulticlassLoss):
        weighted = with_class_weights(model, codes, weights, least=1)
        problems = weighted_problems(objective, X, codes, weighted, len(classes))
    else:
        factors, signs = class_weights(model.class_weight, classes, codes, weights), signs_of(codes, len(classes))
        each = [np.where(sign > 0, weights * factor, weights) for sign, factor in zip(signs, factors, strict=True)]
        problems = objective.problems(Design(X, constant=objective.constant), signs, each)
    return problems


def warn_empty(classes: Targets, problems: Problems) -> None:
    """Warn about classes that have no weight."""
    first = problems[0]
    if isinstance(first, MulticlassProblem):
        empty = classes[first.class_weights == 0.0]
    elif len(problems) == 1:
        empty = classes[[not np.any(first.weights[side]) for side in (first.y < 0.0, first.y > 0.0)]]
    else:
        each = [problem for problem in problems if isinstance(problem, Problem)]
        empty = classes[[not np.any(problem.weights[problem.y > 0.0]) for problem in each]]
    if len(empty):
        names = ", ".join(map(str, empty))
        warn_caller(f"no sample of the class {names} has a weight: the model knows nothing about it", UserWarning)


def weighted_problems(objective: Objective, X: MatrixLike, codes: Codes, weights: Vector, count: int) -> Problems:
    """The problems for sample weights that include class weights."""
    design = Design(X, constant=objective.constant)
    if isinstance(objective.loss, MulticlassLoss):
        (penalty,) = objective.penalties([float(weights.sum())])
        free = objective.free_intercept
        return [MulticlassProblem(design, codes, objective.loss, penalty, weights, free, n_classes=count)]
    signs = signs_of(codes, count)
    return objective.problems(design, signs, [weights] * len(signs))


def signs_of(codes: Codes, count: int) -> list[Vector]:
    """+1 for a class and -1 for the rest: for each class, or only for the second of two."""
    return [np.where(codes == k, 1.0, -1.0) for k in ([1] if count == 2 else range(count))]


def two_classes(codes: Codes, weights: Vector, name: str, least: int = 2) -> Vector:
    """The weights, or an error unless two classes (or as many as are asked for) have positive weight."""
    left = np.count_nonzero(np.bincount(codes, weights))
    if left < least:
        raise ValueError(
            f"{name} leaves {'one class only' if left else 'no class'}; a classifier needs two with positive weight"
        )
    return weights


def with_class_weights(model: Classification, codes: Codes, weights: Vector, least: int = 2) -> Vector:
    """Sample weights times class weights, with weight left for two classes (or as many as are asked for)."""
    factors = class_weights(model.class_weight, model.classes_, codes, weights)
    name = "sample_weight" if model.class_weight is None else "class_weight"
    return two_classes(codes, weights * factors[codes], name, least)


def class_weights(class_weight: ClassWeight, classes: Targets, codes: Codes, weights: Vector) -> Vector:
    """The factor of each class; "balanced" gives every class the same total weight."""
    if class_weight is None:
        return np.ones(len(classes))
    if isinstance(class_weight, str) and class_weight == "balanced":
        totals = np.bincount(codes, weights, len(classes))
        return np.asarray(weights.sum() / (len(classes) * np.where(totals > 0, totals, 1.0)))
    factors = np.asarray(compute_class_weight(class_weight, classes=classes, y=classes[codes]), dtype=np.float64)
    bad = np.flatnonzero(~((factors >= 0.0) & (factors < np.inf)))
    if bad.size:
        raise ValueError(
            f"class_weight has {factors[bad[0]]:g} for the class {classes[bad[0]]}; "
            "weights must be finite and not negative"
        )
    return factors


def one_label_each(y: VectorLike) -> None:
    """Raise for a matrix of labels."""
    shape: tuple[int, ...] = getattr(y, "shape", ())
    if len(shape) == 2 and shape[1] > 1:
        raise ValueError(
            f"y has {shape[1]} columns, but needs one label per sample; for several, wrap this classifier in "
            "sklearn.multiclass.OneVsRestClassifier"
        )


def one_against_rest_probabilities(scores: Matrix) -> Matrix:
    """The logistic function of the scores, normalised to sum 1 for several classes."""
    if scores.ndim == 1:
        return np.column_stack([expit(-scores), expit(scores)])
    p = expit(scores)
    total = p.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(p, total, out=np.full_like(p, 1.0 / p.shape[1]), where=total > 0))
