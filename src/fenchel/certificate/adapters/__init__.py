"""certify, for problems and for models that other software fitted.

Every adapter here reads from a fitted model what it claims to minimise, and states it as one of our problems, up to a
positive factor.
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
    """Bound how far a model is from the optimum of its objective, whatever software fitted it.

    Two forms::

        certify(problem, w, b=0.0, alpha=None, effort="auto", tol=None)
        certify(model, X, y, sample_weight=None, *, effort="auto", tol=None, **options)

    The first takes any weights for a `Problem`, or a matrix (k x d) and k intercepts for a `MulticlassProblem`. The
    second knows what the model claims to minimise and certifies exactly that (divided by a positive factor, so that it
    is a weighted mean loss plus a penalty), or says why it cannot. X, y and sample_weight must be those of the fit.

    Parameters
    ----------
    subject : Problem, MulticlassProblem, fitted model, or path
        - scikit-learn: LinearSVC, LinearSVR, SVC and SVR (linear kernel), LogisticRegression, Ridge, RidgeClassifier,
          Lasso, ElasticNet, LassoLars, SGDClassifier, SGDRegressor, HuberRegressor, QuantileRegressor; their CV forms;
          pipelines, searches and one-vs-rest around them.
        - celer and skglm: their convex sparse models.
        - the path of a LIBLINEAR model file: `C` is required (the file does not store it), `epsilon` for regression;
          `class_weight` (a dict, option -wi) and `regularize_bias=False` (option -R) if they were used.
        - torch.nn.Linear with one output: `loss` and `penalty` are required, `intercept` is optional.
    X, y, sample_weight
        The data of the fit; labels of any type for classifiers. X is not copied.
    effort : {"low", "auto", "high"}, default "auto"
        How long to search for a better dual point. "low": one try. "auto": losses with kinks get more, smooth ones are
        tight near the optimum without. "high": until the bound is (nearly) as good as it can be, also far from the
        optimum; data stored by columns may be copied by rows.
    tol : float, optional
        The relative gap to aim at, and what `ok` compares with.

    Returns
    -------
    Certificate
        Several classes or targets give the certificate of the sum of their objectives, with one part for each.

    Raises
    ------
    TypeError
        For a model that is not known, and for a keyword that it does not use.
    ValueError
        For a parameter whose objective has no certificate here, a model that is not fitted, or data that do not fit it.

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
