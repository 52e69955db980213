"""certify, for problems and for models fitted by other software.

Each adapter states the objective of a fitted model as a `Problem`, up to a positive factor.
"""

from __future__ import annotations

from typing import Any, overload

from numpy.typing import ArrayLike

from fenchel.certificate.adapters import liblinear, others, rejected, skglm, sklearn  # noqa: F401  (each fills the registry)
from fenchel.certificate.adapters.claim import certify_claims
from fenchel.certificate.adapters.registry import claims_of
from fenchel.certificate.certificate import Certificate
from fenchel.certificate.certify import certify_weights
from fenchel.data.typing import MatrixLike, VectorLike
from fenchel.problem import Statement

__all__ = ["certify"]


@overload
def certify(
    subject: Statement,
    w: ArrayLike,
    b: VectorLike = 0.0,
    alpha: ArrayLike | None = None,
    effort: str = "auto",
    tol: float | None = None,
) -> Certificate: ...
@overload
def certify(
    subject: object,
    X: MatrixLike,
    y: VectorLike,
    sample_weight: VectorLike | None = None,
    *,
    effort: str = "auto",
    tol: float | None = None,
    **options: object,
) -> Certificate: ...
def certify(subject: object, *args: Any, **kwargs: Any) -> Certificate:
    """Bound the suboptimality of a model, whatever software fitted it.

    Two forms::

        certify(problem, w, b=0.0, alpha=None, effort="auto", tol=None)
        certify(model, X, y, sample_weight=None, *, effort="auto", tol=None, **options)

    The first takes any weights for a `Problem`, or a matrix (k x d) and k intercepts for a `MulticlassProblem`. The
    second certifies the model's own objective (divided by a positive factor, so that it is a weighted mean loss plus a
    penalty), or raises an error with the reason. X, y and sample_weight must be those of the fit.

    Parameters
    ----------
    subject : Problem, MulticlassProblem, fitted model, or path
        - scikit-learn: LinearSVC, LinearSVR, SVC and SVR (any kernel but "sigmoid"), LogisticRegression, Ridge,
          RidgeClassifier, Lasso, ElasticNet, LassoLars, SGDClassifier, SGDRegressor, HuberRegressor, QuantileRegressor;
          their CV forms; pipelines, searches and one-vs-rest around them.
        - celer and skglm: their convex sparse models.
        - the path of a LIBLINEAR model file: `C` is required (the file does not store it), `epsilon` for regression;
          `class_weight` (a dict, option -wi) and `regularize_bias=False` (option -R) if they were used.
        - torch.nn.Linear with one output: `loss` and `penalty` are required, `intercept` is optional.
    X, y, sample_weight
        The data of the fit; labels of any type for classifiers. X is not copied.
    effort : {"low", "auto", "high"}, default "auto"
        How long to search for a better dual point. "low": one candidate. "auto": more for losses with kinks; for smooth
        losses one is tight near the optimum. "high": until the bound is nearly tight, also far from the optimum; data
        stored by columns may be copied by rows.
    tol : float, optional
        The tolerance for the relative gap: the search ends there, and `ok` compares with it.

    Returns
    -------
    Certificate
        Several classes or targets give the certificate of the sum of their objectives, with one part for each.

    Raises
    ------
    TypeError
        For an unknown model, or a keyword that it does not use.
    ValueError
        For a parameter whose objective has no certificate, a model that is not fitted, or data of another shape.

    Examples
    --------
    >>> import fenchel as fl
    >>> from sklearn.svm import LinearSVC
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["no", "no", "yes", "yes"]
    >>> fl.certify(LinearSVC(tol=1e-8).fit(X, y), X, y).ok
    True
    """
    if isinstance(subject, Statement):
        return certify_weights(subject, *args, **kwargs)
    return _certify_model(subject, *args, **kwargs)


def _certify_model(
    model: object,
    X: MatrixLike | None = None,
    y: VectorLike | None = None,
    sample_weight: VectorLike | None = None,
    *,
    effort: str = "auto",
    tol: float | None = None,
    **options: object,
) -> Certificate:
    return certify_claims(claims_of(model, X, y, sample_weight, options), effort, tol)
