"""Fitted scikit-learn models with the weights of ours, for software that knows scikit-learn's classes only.

Exporters decide by the class: skl2onnx, for one, ends a binary `LogisticRegression` of its own with the logistic
function, and any other class with a softmax of (-z, z), which is the logistic function of 2 z. A twin is of
scikit-learn's class, needs nothing of this package, and has equal scores, labels and probabilities.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import singledispatch
from typing import Any

import numpy as np
import sklearn.linear_model
import sklearn.svm
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import LabelBinarizer
from sklearn.utils.validation import check_is_fitted

from fenchel.data.typing import Matrix, Vector
from fenchel.estimator.base import LinearPredictor
from fenchel.estimator.classification import LabelScores, LogisticProbabilities
from fenchel.estimator.kernel.classifier import KernelClassifier
from fenchel.estimator.logistic import LogisticModel
from fenchel.estimator.regression import Regression
from fenchel.estimator.ridge import RidgeClassifier

#: Parameters that mean something else in scikit-learn: a twin has its defaults.
OTHER_MEANING = frozenset({"solver", "max_iter", "tol", "multi_class", "penalty", "verbose"})
#: Fitted attributes that are of this package, or have another meaning there.
OWN_ATTRIBUTES = frozenset(
    {"certificate_", "trace_", "dual_coef_", "certified_zeros_", "margin_interval_", "separable_", "support_"}
)


def twin_of(model: LinearPredictor) -> Any:
    """A fitted scikit-learn model that predicts the same."""
    check_is_fitted(model)
    return _twin(model)


@singledispatch
def _twin(model: LinearPredictor) -> Any:
    raise TypeError(f"{type(model).__name__} has no twin in scikit-learn")


@_twin.register(Regression)
def _regressor(model: Regression) -> Any:
    return _filled(_namesake(model) or sklearn.linear_model.LinearRegression(), model)


@_twin.register(LabelScores)
def _classifier(model: LabelScores) -> Any:
    if not hasattr(model, "coef_"):
        raise _no_kernels(model)
    return _filled(_namesake(model) or sklearn.svm.LinearSVC(), model)


@_twin.register(KernelClassifier)
def _kernel_classifier(model: KernelClassifier) -> Any:
    raise _no_kernels(model)


@_twin.register(RidgeClassifier)
def _ridge_classifier(model: RidgeClassifier) -> Any:
    twin = _filled(_namesake(model), model)
    twin._label_binarizer = LabelBinarizer(pos_label=1, neg_label=-1).fit(model.classes_)
    return twin


@_twin.register(LogisticProbabilities)
def _general_classifier(model: LogisticProbabilities) -> Any:
    if not hasattr(model, "predict_proba"):
        return _classifier(model)
    return _one_against_rest(model) if len(model.classes_) > 2 else _filled(_logistic(), model)


@_twin.register(LogisticModel)
def _logistic_model(model: LogisticModel) -> Any:
    if len(model.classes_) > 2 and not model._is_softmax():
        return _one_against_rest(model)
    return _filled(_namesake(model) or _logistic(), model)


def _no_kernels(model: LinearPredictor) -> TypeError:
    return TypeError(
        f"this {type(model).__name__} is a function of a kernel, which no linear model of scikit-learn predicts; "
        "its parts are kernel_, support_vectors_, dual_coef_ and intercept_"
    )


def _logistic() -> Any:
    """For two classes: probabilities are the logistic function of the score in every version of scikit-learn."""
    return sklearn.linear_model.LogisticRegression()


def _one_against_rest(model: LabelScores) -> Any:
    """A binary logistic regression for each class; probabilities are normalised to sum 1, as ours."""
    twin = OneVsRestClassifier(_logistic())
    coef: Matrix = model.coef_
    twin.estimators_ = [
        _with(_logistic(), {**_shape_of(model), "classes_": np.arange(2), **_own_row(coef, model.intercept_, k)})
        for k in range(len(model.classes_))
    ]
    twin.label_binarizer_ = LabelBinarizer(sparse_output=True).fit(model.classes_)
    return _with(twin, {**_shape_of(model), "classes_": model.classes_.copy()})


def _own_row(coef: Matrix, intercept: Vector, k: int) -> dict[str, Any]:
    return {"coef_": coef[k : k + 1].copy(), "intercept_": intercept[k : k + 1].copy(), "n_iter_": np.zeros(1, int)}


def _shape_of(model: LinearPredictor) -> dict[str, Any]:
    return {name: value for name, value in vars(model).items() if name in ("n_features_in_", "feature_names_in_")}


def _namesake(model: LinearPredictor) -> Any:
    """scikit-learn's class of the same name, with the parameters that mean the same there; None if there is none."""
    name = type(model).__name__
    kind = getattr(sklearn.linear_model, name, None) or getattr(sklearn.svm, name, None)
    if kind is None:
        return None
    own, theirs = model.get_params(deep=False), kind().get_params(deep=False)
    shared = {
        name: value
        for name, value in own.items()
        if name in theirs and name not in OTHER_MEANING and not (value is None and theirs[name] is not None)
    }
    if "penalty" in own:
        shared |= _penalty(own, theirs)
    return kind(**shared)


def _penalty(own: Mapping[str, Any], theirs: Mapping[str, Any]) -> dict[str, Any]:
    """The penalty by the names of the installed version, and an algorithm that has it."""
    penalty = own["penalty"]
    if penalty is None:
        return {"C": np.inf} if theirs.get("penalty") == "deprecated" else {"penalty": None}
    if "solver" not in theirs:  # LinearSVC
        return {"penalty": penalty} | ({"dual": False} if penalty == "l1" and own["dual"] == "auto" else {})
    if "l1_ratio" in own:
        ratio = {"l1": 1.0, "l2": 0.0}.get(penalty, own["l1_ratio"] or 0.0)
        if theirs.get("penalty") == "deprecated":
            return {"l1_ratio": ratio} | ({"solver": "saga"} if ratio else {})
        return {"penalty": "elasticnet", "l1_ratio": ratio, "solver": "saga"} if ratio else {"l1_ratio": None}
    return {"solver": "saga"} if own.get("l1_ratios") is not None or penalty == "l1" else {}


def _filled(twin: Any, model: LinearPredictor) -> Any:
    """The twin with copies of our fitted attributes."""
    found = {
        name: value.copy() if hasattr(value, "copy") else value
        for name, value in vars(model).items()
        if name.endswith("_") and not name.startswith("_") and name not in OWN_ATTRIBUTES and not _is_ours(value)
    }
    return _with(twin, found)


def _is_ours(value: object) -> bool:
    """Whether a value is an object of this package, such as what a stream has learnt."""
    return type(value).__module__.partition(".")[0] == "fenchel"


def _with(twin: Any, attributes: Mapping[str, Any]) -> Any:
    for name, value in attributes.items():
        if not isinstance(getattr(type(twin), name, None), property):  # classes_ in versions before 1.9
            setattr(twin, name, value)
    return twin
