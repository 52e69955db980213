"""What all estimators share: parameters, checking, fitting, and the fitted attributes."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from fenchel.certificate import Certificate
from fenchel.data import Design
from fenchel.data.design import Vector
from fenchel.estimator.objective import threads
from fenchel.problem import Problem, Trait
from fenchel.problem.checks import require_flag
from fenchel.problem.losses import Loss
from fenchel.problem.penalties import Penalty
from fenchel.solver import NotCertifiedWarning, Result, solve_many
from fenchel.solver.solve import not_certified

#: Solvers that use X as it is stored; the others walk over rows.
ANY_STORAGE = frozenset({"primal_cd", "tv", "trend", "fista", "pdhg"})


class LinearEstimator(BaseEstimator):  # type: ignore[misc]
    """A linear model that is fitted until its certificate is good enough.

    A subclass says what it minimises by `_loss`, `_penalty` and `_constant`; everything else is here. Losses and
    penalties are values: they have no state, but their fields can be searched over as `penalty__lam`.
    """

    #: scikit-learn's names of algorithms; the minimiser is the same, so each means "auto".
    _their_solvers: ClassVar[frozenset[str]] = frozenset()

    #: What several problems are, one for each.
    _parts_are: ClassVar[str] = "classes"

    # What is minimised --------------------------------------------------------------------------------------------

    def _loss(self) -> Loss:
        raise NotImplementedError

    def _penalty(self, total_weight: float) -> Penalty:
        """The penalty in the mean form: scikit-learn's C and alpha multiply sums, so W comes in."""
        raise NotImplementedError

    def _constant(self) -> float:
        """The entry of the constant column whose weight is a penalised intercept; 0 if there is none."""
        return 0.0

    def _check_parameters(self) -> None:
        """Raise for a parameter that cannot be honoured; before any work."""

    # Parameters ---------------------------------------------------------------------------------------------------

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
            part = getattr(self, owner, None)
            known = [f.name for f in dataclasses.fields(part)] if dataclasses.is_dataclass(part) else []
            if field not in known or isinstance(part, type):
                offers = f"{owner} has {', '.join(known)}" if known else f"{owner} is {part!r}, which has no parameters"
                raise ValueError(f"invalid parameter {key!r}: {offers}")
            setattr(self, owner, dataclasses.replace(part, **{field: value}))  # type: ignore[type-var]
        return self

    # Fitting ------------------------------------------------------------------------------------------------------

    def _validate(self, X: Any, y: Any, **options: Any) -> tuple[Any, Any]:
        self._check_parameters()
        require_flag(self.fit_intercept, "fit_intercept")
        return validate_data(  # type: ignore[no-any-return]
            self, X, y, accept_sparse=["csr", "csc"], dtype=[np.float64, np.float32], y_numeric=False, **options
        )

    def _weights(self, sample_weight: Any, X: Any) -> Vector:
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if not weights.any():
            raise ValueError("sample_weight is zero everywhere; at least one sample needs a positive weight")
        return np.ascontiguousarray(weights)

    def _design(self, X: Any) -> Design:
        return Design(X, constant=self._constant())

    def _problem(self, design: Design, y: Vector, weights: Vector) -> Problem:
        penalty = self._penalty(float(weights.sum()))
        return Problem(design, y, self._loss(), penalty, weights, self.fit_intercept and not design.constant)

    def _options(self) -> dict[str, Any]:
        """What `solve` is told: the parameters that it has too, and scikit-learn's words for them."""
        own = self.get_params(deep=False)
        shared = ("tol", "atol", "max_iter", "max_seconds", "random_state", "n_threads")
        options = {name: own[name] for name in shared if name in own}
        options["solver"] = self._solver_name()
        options["progress"] = bool(own.get("progress") or own.get("verbose"))
        if "n_jobs" in own:
            options["n_threads"] = threads(own["n_jobs"])
        return options

    def _solver_name(self) -> Any:
        solver = getattr(self, "solver", "auto")
        return "auto" if isinstance(solver, str) and solver in self._their_solvers else solver

    def _solve(self, problems: list[Problem], starts: list[Any] | None = None) -> list[Result]:
        """Fit every problem (one, or one per class) within the time that all of them have, and set the attributes."""
        results = self._run(problems, self._starts(problems) if starts is None else starts)
        self._finish(results, problems[0].design.constant)
        return results

    def _finish(self, results: list[Result], constant: float) -> None:
        """Set the attributes, and warn if a certificate fell short."""
        self._keep(results, constant)
        short = [result for result in results if result.status != "certified"]
        if short:
            worst = max(short, key=lambda result: result.certificate.relative_gap)
            of = f"{len(short)} of {len(results)} {self._parts_are}: " if len(results) > 1 else ""
            warnings.warn(of + not_certified(worst), NotCertifiedWarning, stacklevel=4)

    def _run(self, problems: list[Problem], starts: list[Any]) -> list[Result]:
        return solve_many(self._by_rows(problems), starts=starts, **self._options())

    def _by_rows(self, problems: list[Any]) -> list[Any]:
        """The same problems, all with one design, stored as fits want it."""
        design = self._stored_for_fit(problems[0].design, problems[0].penalty)
        return [problem.replace(design=design) for problem in problems]

    def _stored_for_fit(self, design: Design, penalty: Penalty) -> Design:
        """X by rows, copied if need be, where the penalty is one for which the fast solvers walk over rows."""
        solver = self._solver_name()
        as_it_is = getattr(solver, "name", solver) in ANY_STORAGE or Trait.STRONGLY_CONVEX_PENALTY not in penalty.traits
        return design if as_it_is else design.stored_by_rows()

    def _starts(self, problems: list[Problem]) -> list[Any]:
        """The last fit's solution for a warm start, where shapes agree."""
        nothing: list[Any] = [None] * len(problems)
        if not (getattr(self, "warm_start", False) and hasattr(self, "coef_")):
            return nothing
        constant = problems[0].design.constant
        w, b, alpha = dense_rows(self.coef_), np.ravel(self.intercept_), np.atleast_2d(self.dual_coef_)
        w, b = with_constant(w, b, constant)
        if problems[0].shape != (alpha.shape[1], w.shape[1]):
            return nothing
        if len(problems) == 1 < len(w):  # one problem for all classes
            return [(w, b, alpha.T)]
        return list(zip(w, b, alpha, strict=True)) if len(w) == len(problems) else nothing

    def _keep(self, results: list[Result], constant: float) -> None:
        several = len(results) > 1
        w = np.vstack([r.w for r in results])
        self.coef_: Any = w[:, :-1] if constant else w
        b = np.concatenate([np.atleast_1d(r.b) for r in results])
        self.intercept_: Any = constant * w[:, -1] if constant else b
        self.dual_coef_ = np.vstack([r.alpha.T for r in results])
        self.n_iter_ = self._n_iter(np.array([r.n_iter for r in results]))
        self.trace_ = [r.trace for r in results] if several else results[0].trace
        self.certificate_ = (
            Certificate.combined([r.certificate for r in results]) if several else results[0].certificate
        )

    def _n_iter(self, counts: NDArray[np.int_]) -> Any:
        return counts if len(counts) > 1 else int(counts[0])

    # Predicting ---------------------------------------------------------------------------------------------------

    def _scores(self, X: Any) -> NDArray[Any]:
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse=["csr", "csc"], dtype=[np.float64, np.float32], reset=False)
        coef = self.coef_ if sp.issparse(self.coef_) else np.atleast_2d(self.coef_)
        scores = safe_sparse_dot(X, coef.T, dense_output=True) + self.intercept_
        return np.asarray(scores)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class CertifiedZeros(LinearEstimator):
    """A model that says which of its weights are zero in the exact optimum, too."""

    def _keep(self, results: list[Result], constant: float) -> None:
        super()._keep(results, constant)
        self.certified_zeros_: Any = np.atleast_2d(self.certificate_.zeros())


class SparseWeights:
    """Weights may be stored as a sparse matrix, as models with an L1 penalty may in scikit-learn."""

    coef_: Any

    def sparsify(self) -> Self:
        """Store `coef_` as a CSR matrix; predictions work as before."""
        check_is_fitted(self)
        self.coef_ = sp.csr_matrix(self.coef_)
        return self

    def densify(self) -> Self:
        """Store `coef_` as an array again."""
        check_is_fitted(self)
        self.coef_ = dense_rows(self.coef_)
        return self


def dense_rows(coef: Any) -> Vector:
    """Weights with a row for each class or target, as an array."""
    return np.atleast_2d(coef.toarray() if sp.issparse(coef) else coef)


def with_constant(w: Vector, b: Vector, constant: float) -> tuple[Vector, Vector]:
    """Weights and intercepts of a model, as those of its problem: of a constant column, the weight is b / constant."""
    return (np.column_stack([w, b / constant]), np.zeros_like(b)) if constant else (w, b)
