"""Meta-estimators: pipelines, searches, one-vs-rest."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fenchel.certificate.adapters.claim import Claim, LinearClaim
from fenchel.certificate.adapters.fitted import FittedModel, codes, require
from fenchel.certificate.adapters.registry import adapter, claims_of
from fenchel.data.typing import MatrixLike, VectorLike


@adapter("Pipeline", package="sklearn.pipeline")
def pipeline(model: FittedModel, X: MatrixLike, y: VectorLike, sample_weight: VectorLike | None) -> list[Claim]:
    """The objective of the last step, on the transformed X.

    The certificate has only its numbers: its labels() would need transformed data.
    """
    *before, (_, last) = model.steps
    for _, step in before:
        X = X if step is None or isinstance(step, str) else step.transform(X)
    claims = claims_of(last, X, y, sample_weight, {})
    return [replace(claim, evidence=False) if isinstance(claim, LinearClaim) else claim for claim in claims]


@adapter(
    "GridSearchCV",
    "RandomizedSearchCV",
    "HalvingGridSearchCV",
    "HalvingRandomSearchCV",
    package="sklearn.model_selection",
)
def search(model: FittedModel, X: MatrixLike, y: VectorLike, sample_weight: VectorLike | None) -> list[Claim]:
    """The objective of the best estimator, refitted to all data."""
    require(model, hasattr(model, "best_estimator_"), "it has no best_estimator_ (it is not fitted, or refit is False)")
    return claims_of(model.best_estimator_, X, y, sample_weight, {})


@adapter("OneVsRestClassifier", package="sklearn.multiclass")
def one_vs_rest(model: FittedModel, X: MatrixLike, y: VectorLike, sample_weight: VectorLike | None) -> list[Claim]:
    """The sum of the objectives of all classes, each against the rest."""
    require(model, hasattr(model, "estimators_"), "it is not fitted")
    require(model, not model.multilabel_, "it was fitted to several labels for each sample")
    labels = codes(model.classes_, y, len(np.asarray(y)))
    positive = [1] if len(model.estimators_) == 1 else range(len(model.estimators_))
    return [
        claim
        for k, estimator in zip(positive, model.estimators_, strict=True)
        for claim in claims_of(estimator, X, (labels == k).astype(int), sample_weight, {})
    ]
