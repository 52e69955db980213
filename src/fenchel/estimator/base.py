"""The base of all estimators: parameters, checks of the data, fitting, and the fitted attributes."""

from __future__ import annotations

import dataclasses
import sys
import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from inspect import signature
from typing import Any, ClassVar, Self, TypeAlias, TypeGuard, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from fenchel.certificate import Certificate, MarginInterval
from fenchel.data import Design
from fenchel.data.convert import require_unmasked
from fenchel.data.typing import Indices, Label, Mask, Matrix, MatrixLike, Seed, Vector, VectorLike
from fenchel.estimator.exchange.interface import DocumentationLinks, as_csr
from fenchel.estimator.objective import Objective, threads
from fenchel.kernel import Kernel
from fenchel.problem import MulticlassProblem, Problem, Statement
from fenchel.problem.checks import require_flag
from fenchel.problem.losses import Loss
from fenchel.problem.penalties import Penalty
from fenchel.solver import NotCertifiedWarning, Result, Solver, solve_many
from fenchel.solver.many import solve_classes
from fenchel.solver.solve import Clock, not_certified
from fenchel.steps.choose import storage_for

#: Checked features: an array, or a CSR or CSC matrix.
Features: TypeAlias = NDArray[np.floating] | sp.sparray
#: Checked targets, or labels.
Targets: TypeAlias = NDArray[np.generic]
SolverLike: TypeAlias = str | Solver[Any]
ClassWeight: TypeAlias = Mapping[Label, float] | str | None
#: Weights, intercept and multipliers to start from.
StartLike: TypeAlias = tuple[Vector, Vector | float, Vector] | None
Stated = TypeVar("Stated", Problem, Problem | MulticlassProblem)
#: One for each class or target, or one for all classes.
Problems: TypeAlias = Sequence[Problem | MulticlassProblem]


@cache
def _parameter_names(init: Callable[..., None]) -> tuple[str, ...]:
    """The parameters of a class with this `__init__`; none if it does not name them all."""
    found = list(signature(init).parameters.values())[1:]
    named = all(one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY) for one in found)
    return tuple(sorted(one.name for one in found)) if named else ()


class Fitted:
    """Attributes that a fit sets."""

    coef_: Any  # an array, or a sparse matrix
    intercept_: Any
    dual_coef_: Vector
    certificate_: Certificate
    trace_: Any
    n_iter_: Any
    certified_zeros_: Mask
    classes_: Targets  # of a classifier
    rank_: int  # of least squares without a penalty
    margin_interval_: MarginInterval
    separable_: str
    support_: Indices
    support_vectors_: Any  # an array, or a sparse matrix
    kernel_: Kernel


@dataclass(eq=False, repr=False, kw_only=True)
class LinearPredictor(Fitted, DocumentationLinks, BaseEstimator):  # type: ignore[misc]
    """A linear model in scikit-learn's interface.

    Parameters are the fields of dataclasses; shared ones are declared in base classes. A subclass checks its parameters
    in `_check_parameters`. Losses and penalties are values without state; their fields can be searched over as
    `penalty__lam`.
    """

    fit_intercept: bool = True
    tol: float = 1e-4

    def _check_parameters(self) -> None:
        """Raise for invalid parameters, before any work."""

    # Parameters ---------------------------------------------------------------------------------------------------

    @classmethod
    def _get_param_names(cls) -> list[str]:
        """The names of the parameters; scikit-learn reads the signature anew at every clone of a search."""
        return list(_parameter_names(cls.__init__)) or list(super()._get_param_names())

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters; with deep, also the fields of a loss or penalty object, as `penalty__lam`."""
        params: dict[str, Any] = super().get_params(deep=False)
        if deep:
            for name, value in list(params.items()):
                if isinstance(value, Loss | Penalty) and dataclasses.is_dataclass(value):
                    params |= {f"{name}__{f.name}": getattr(value, f.name) for f in dataclasses.fields(value)}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters; `penalty__lam=...` replaces the penalty by one with that field."""
        nested = {key: params.pop(key) for key in list(params) if "__" in key}
        super().set_params(**params)
        for key, value in nested.items():
            owner, _, field = key.partition("__")
            old = getattr(self, owner, None)
            known = [f.name for f in dataclasses.fields(old)] if dataclasses.is_dataclass(old) else []
            if field not in known or isinstance(old, type):
                fields = f"{owner} has {', '.join(known)}" if known else f"{owner} is {old!r}, which has no parameters"
                raise ValueError(f"invalid parameter {key!r}: {fields}")
            setattr(self, owner, dataclasses.replace(old, **{field: value}))  # type: ignore[type-var]
        return self

    # Predicting ---------------------------------------------------------------------------------------------------

    def _scores(self, X: MatrixLike) -> Matrix:
        checked = checked_features(self, X)
        coef = self.coef_ if sp.issparse(self.coef_) else np.atleast_2d(self.coef_)
        return np.asarray(safe_sparse_dot(checked, coef.T, dense_output=True) + self.intercept_)

    def to_sklearn(self) -> Any:
        """A fitted scikit-learn model with equal scores, labels and probabilities, which needs nothing of this package.

        It is of the class of the same name if there is one, else of the closest. For export (ONNX, PMML, skops,
        MLflow): such software knows scikit-learn's classes, not ours.
        """
        from fenchel.estimator.exchange.twin import twin_of  # loads sklearn.linear_model

        return twin_of(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


@dataclass(eq=False, repr=False, kw_only=True)
class LinearEstimator(LinearPredictor):
    """A linear model, fitted by `solve` until its certified gap is within the tolerance.

    A subclass returns its objective from `_objective`; its `fit` uses the functions here and in `classification` and
    `regression`.
    """

    #: scikit-learn's names of algorithms, accepted as "auto": the minimiser is the same.
    _their_solvers: ClassVar[frozenset[str]] = frozenset()

    solver: SolverLike = "auto"
    max_iter: int | None = None
    random_state: Seed = None

    @abstractmethod
    def _objective(self) -> Objective:
        """The objective; called when the classes and the number of features are known."""


@dataclass(eq=False, repr=False, kw_only=True)
class FitParameters:
    """Parameters of estimators that solve one problem for each class or target."""

    max_seconds: float | None = None
    warm_start: bool = False
    n_threads: int | None = 1


@dataclass(eq=False, repr=False, kw_only=True)
class VerboseFitParameters(FitParameters):
    """The same, with scikit-learn's name for a progress bar."""

    verbose: int = 0


@dataclass(eq=False, repr=False, kw_only=True)
class InterceptParameters:
    """Parameters of estimators whose intercept LIBLINEAR penalises."""

    intercept_scaling: float = 1.0
    penalize_intercept: bool = False


class SparseWeights(Fitted):
    """`sparsify` and `densify`, as in scikit-learn's models with an L1 penalty."""

    def sparsify(self) -> Self:
        """Store `coef_` as a CSR matrix (or array: scikit-learn's `sparse_interface`); predictions work as before."""
        check_is_fitted(self)
        self.coef_ = as_csr(self.coef_)
        return self

    def densify(self) -> Self:
        """Store `coef_` as an array again."""
        check_is_fitted(self)
        self.coef_ = dense_rows(self.coef_)
        return self


# Before a fit -----------------------------------------------------------------------------------------------------


def validated(model: LinearPredictor, X: MatrixLike, y: VectorLike, **checks: object) -> tuple[Features, Targets]:
    """Parameters and data of a fit, checked; `checks` are scikit-learn's."""
    model._check_parameters()
    require_flag(model.fit_intercept, "fit_intercept")
    if not checks.keys() - {"multi_output"} and is_plain(X) and _are_plain_targets(y, len(X)):
        model.n_features_in_ = X.shape[1]
        model.__dict__.pop("feature_names_in_", None)  # of an earlier fit
        return X, y
    require_unmasked(X=X, y=y)
    checked: tuple[Features, Targets] = validate_data(
        model, X, y, accept_sparse=["csr", "csc"], dtype=[np.float64, np.float32], y_numeric=False, **checks
    )
    return checked


def is_plain(X: object) -> TypeGuard[NDArray[np.floating]]:
    """Whether X is an array that scikit-learn's checks, a fifth of a small fit, would pass as it is."""
    return (
        type(X) is np.ndarray
        and X.ndim == 2
        and (X.dtype == np.float64 or X.dtype == np.float32)
        and 0 not in X.shape
        and _sum_is_finite(X)
    )


def _are_plain_targets(y: object, n: int) -> TypeGuard[NDArray[np.generic]]:
    """The same of n targets or labels, one each."""
    if not (type(y) is np.ndarray and y.shape == (n,)):
        return False
    return y.dtype.kind in "iu" or (y.dtype.kind == "f" and _sum_is_finite(y))


def _sum_is_finite(values: NDArray[np.floating]) -> bool:
    """A finite sum has finite terms only."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(np.sum(values, dtype=np.float64)))


def checked_features(model: LinearPredictor, X: MatrixLike) -> Features:
    """Checked features for a fitted model."""
    check_is_fitted(model)
    if is_plain(X) and X.shape[1] == model.n_features_in_ and not hasattr(model, "feature_names_in_"):
        return X
    require_unmasked(X=X)
    features: Features = validate_data(
        model, X, accept_sparse=["csr", "csc"], dtype=[np.float64, np.float32], reset=False
    )
    return features


def sample_weights(sample_weight: VectorLike | None, X: MatrixLike, may_vanish: bool = False) -> Vector:
    """One weight for each sample, not all of them zero unless they may vanish; ones by default."""
    if sample_weight is None and isinstance(X, np.ndarray):
        return np.ones(len(X))
    require_unmasked(sample_weight=sample_weight)
    if may_vanish and sample_weight is not None:
        given = np.asarray(sample_weight)
        if given.ndim == 1 and len(given) == np.shape(X)[0] and not np.any(given):
            return np.zeros(len(given))
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if not weights.any():
        raise ValueError("sample_weight is zero everywhere; at least one sample needs a positive weight")
    return np.ascontiguousarray(weights)


def solver_options(model: LinearEstimator) -> dict[str, Any]:
    """Options of `solve` from the parameters of the model, including scikit-learn's names for them."""
    own = {name: getattr(model, name) for name in model._get_param_names()}
    shared = ("tol", "atol", "max_iter", "max_seconds", "random_state", "n_threads")
    options = {name: own[name] for name in shared if name in own}
    solver = own.get("solver", "auto")
    options["solver"] = "auto" if isinstance(solver, str) and solver in model._their_solvers else solver
    options["progress"] = bool(own.get("progress") or own.get("verbose"))
    if "n_jobs" in own:
        options["n_threads"] = threads(own["n_jobs"])
    return {**options, **(own.get("solver_options") or {}), **vars(model).get("_watching", {})}


# A fit ------------------------------------------------------------------------------------------------------------


def fit_problems(
    model: LinearEstimator, problems: Problems, starts: Sequence[StartLike] | None = None, of: str = "classes"
) -> list[Result]:
    """Solve all problems, and set the attributes of the model; `of` is "classes" or "targets", for warnings."""
    options = solver_options(model)
    clock = Clock(options.get("max_seconds"))
    warm = starts is None  # other starts only save time: of those the solver does better
    starts = warm_starts(model, problems) if starts is None else starts
    stored = stored_for(options["solver"], problems)
    results = solve_classes(stored, starts, warm, options)
    if is_single(problems[0].design):
        results = in_single_precision(stored, results, options, clock)
    store(model, results, problems[0].design.constant, is_single(problems[0].design))
    warn_short(results, of)
    return results


def certify_start(model: LinearEstimator, problems: Problems, start: StartLike) -> None:
    """Certify a model as it is, without a step, and set the attributes; however large its gap, there is no warning."""
    options = solver_options(model) | {"max_iter": 0}
    results, single = solve_classes(problems, [start], False, options), is_single(problems[0].design)
    results = [result.in_single_precision() for result in results] if single else results
    store(model, results, problems[0].design.constant, single)


def is_single(X: Design) -> bool:
    """Whether X is stored in single precision; so are the weights of its models."""
    return bool(X.dtype == np.float32)


def in_single_precision(
    problems: Sequence[Statement], results: Sequence[Result], options: Mapping[str, Any], clock: Clock
) -> list[Result]:
    """The results rounded to single precision, with certificates of the rounded weights.

    Rounding may use up what the tolerance has left; such a model is refined to a tenth of the tolerance first, with the
    steps and the time that are left.
    """
    rounded = [result.in_single_precision() for result in results]
    finer = {**options, "tol": 0.1 * options["tol"], "atol": 0.1 * options.get("atol", 0.0), "certify_start": False}
    for k, result in enumerate(rounded):
        most = options.get("max_iter")
        left = None if most is None else most - result.n_iter
        if result.status != "precision" or left == 0 or clock.over:
            continue
        limits = {**finer, "max_iter": left, "max_seconds": clock.left}
        (better,) = solve_many([problems[k]], starts=[results[k]], **limits)
        again = better.in_single_precision()
        if again.certificate.gap < result.certificate.gap:
            asked = results[k].certificate
            certificate = replace(again.certificate, tol=asked.tol, atol=asked.atol)
            status = "certified" if certificate.ok else "precision"
            steps = results[k].n_iter + again.n_iter
            rounded[k] = replace(again, certificate=certificate, n_iter=steps, status=status)
    return rounded


def stored_for(solver: SolverLike, problems: Sequence[Stated]) -> list[Stated]:
    """The problems with their common design stored as the solver needs it."""
    design = storage_for(solver, problems[0].design, problems[0].penalty)
    if design is problems[0].design:
        return list(problems)
    return [problem.replace(X=design) for problem in problems]


def warm_starts(model: LinearEstimator, problems: Problems) -> list[StartLike]:
    """The solution of the last fit for each problem, if `warm_start` is set and there are as many weights.

    For other samples than those of the last fit the multipliers are alpha_i = -phi'(z_i).
    """
    nothing: list[StartLike] = [None] * len(problems)
    if not (getattr(model, "warm_start", False) and hasattr(model, "coef_")):
        return nothing
    w, b, alpha = stored_models(model, problems[0].design.constant)
    first, is_known = problems[0], alpha.shape[1] == problems[0].shape[0]
    if isinstance(first, MulticlassProblem):  # one problem for all classes
        if w.shape != first.shapes[0]:
            return nothing
        return [(w, b, alpha.T if is_known else np.zeros(first.shapes[2]))]
    if w.shape != (len(problems), first.shape[1]):
        return nothing
    each = [problem for problem in problems if isinstance(problem, Problem)]
    if not is_known:
        scores = [problem.scores(*model) for problem, *model in zip(each, w, b, strict=True)]
        alpha = np.array([-problem.loss.derivative(z, problem.y) for problem, z in zip(each, scores, strict=True)])
    return list(zip(w, b, alpha, strict=True))


def stored_models(model: LinearEstimator, constant: float) -> tuple[Matrix, Vector, Matrix]:
    """Weights, intercepts and multipliers of a fitted model, a row for each class or target, in the form of its
    problems: the weight of a constant column is the intercept divided by the constant.
    """
    alpha = np.atleast_2d(model.dual_coef_)
    w, b = (np.asarray(part, dtype=np.float64) for part in (dense_rows(model.coef_), np.ravel(model.intercept_)))
    return (np.column_stack([w, b / constant]), np.zeros_like(b), alpha) if constant else (w, b, alpha)


def split_constant(result: Result, constant: float) -> tuple[Matrix, Vector]:
    """Weights (a row for each class) and intercepts of a result."""
    w = np.atleast_2d(result.w)
    return (w[:, :-1], constant * w[:, -1]) if constant else (w, np.atleast_1d(result.b))


def store(model: LinearEstimator, results: Sequence[Result], constant: float, single: bool = False) -> None:
    """Set the fitted attributes that all estimators have; weights that are single precision numbers as such."""
    several = len(results) > 1
    weights, intercepts = zip(*(split_constant(result, constant) for result in results), strict=True)
    coef, intercept = np.vstack(weights), np.concatenate(intercepts)
    model.coef_, model.intercept_ = (shortest(coef), shortest(intercept)) if single else (coef, intercept)
    model.dual_coef_ = np.vstack([result.alpha.T for result in results])
    model.n_iter_ = steps_of(results) if several else results[0].n_iter
    model.trace_ = [result.trace for result in results] if several else results[0].trace
    model.certificate_ = combined_certificate(results)


def shortest(values: Vector) -> NDArray[np.floating]:
    """In single precision if that changes no number."""
    with np.errstate(over="ignore", under="ignore"):
        short = values.astype(np.float32)
    return short if np.array_equal(short, values) else values


def steps_of(results: Sequence[Result]) -> NDArray[np.int_]:
    """The steps of each problem."""
    return np.array([result.n_iter for result in results])


def combined_certificate(results: Sequence[Result]) -> Certificate:
    """The certificate of one result, or of the sum of several objectives."""
    certificates = [result.certificate for result in results]
    return type(certificates[0]).combined(certificates) if len(results) > 1 else certificates[0]


def warn_short(results: Sequence[Result], of: str, count: int | None = None) -> None:
    """One warning for all results that miss the tolerance, out of `count` (by default the number of results)."""
    count = len(results) if count is None else count
    short = [result for result in results if result.status not in ("certified", "callback")]
    if not short:
        return
    worst = max(short, key=lambda result: result.certificate.relative_gap)
    prefix = f"{len(short)} of {count} {of}: " if count > 1 else ""
    warn_caller(prefix + not_certified(worst), NotCertifiedWarning)


def warn_caller(message: str, kind: type[Warning]) -> None:
    """A warning at the line that called this package."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("fenchel."):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, kind, stacklevel=level)


def dense_rows(coef: NDArray[np.float64] | sp.sparray) -> Matrix:
    """Weights as an array with a row for each class or target."""
    return np.atleast_2d(coef if isinstance(coef, np.ndarray) else coef.toarray())
