"""What all estimators share: parameters, checking, fitting, and the fitted attributes."""

from __future__ import annotations

import dataclasses
import time
import warnings
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from fenchel.certificate import Certificate
from fenchel.data import Design
from fenchel.data.design import Vector
from fenchel.estimator.names import resolve_loss, resolve_penalty
from fenchel.problem import Problem
from fenchel.solver import NotCertifiedWarning, Result, Stop, solve
from fenchel.solver.solve import not_certified


class LinearEstimator(BaseEstimator):  # type: ignore[misc]
    """A linear model that is fitted until its certificate is good enough.

    Losses and penalties are values: they have no state, but their fields can be searched over as `penalty__lam`.
    """

    # Parameters ---------------------------------------------------------------------------------------------------

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters; with deep, also the fields of a loss or penalty object, as `penalty__lam`."""
        params: dict[str, Any] = super().get_params(deep=False)
        if deep:
            for name in ("loss", "penalty"):
                if dataclasses.is_dataclass(value := params[name]) and not isinstance(value, type):
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

    def _validate(self, X: Any, y: Any) -> tuple[Any, Any]:
        return validate_data(  # type: ignore[no-any-return]
            self,
            X,
            y,
            accept_sparse=["csr", "csc"],
            dtype=[np.float64, np.float32],
            multi_output=False,
            y_numeric=False,
        )

    def _weights(self, sample_weight: Any, X: Any) -> Vector:
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if not weights.any():
            raise ValueError("sample_weight is zero everywhere; at least one sample needs a positive weight")
        return np.ascontiguousarray(weights)

    def _problem(self, X: Any, y: Vector, weights: Vector) -> Problem:
        penalty = resolve_penalty(self.penalty, self.lam, float(weights.sum()))
        return Problem(Design(X), y, resolve_loss(self.loss), penalty, weights, self.fit_intercept)

    def _solve(self, problems: list[Problem]) -> None:
        """Fit every problem (one, or one per class) within the time that all of them have, and set the attributes."""
        deadline = (
            None
            if self.max_seconds is None
            else time.monotonic() + float(Stop(max_seconds=self.max_seconds).max_seconds or 0)
        )
        starts = self._starts(problems)
        results: list[Result] = []
        for problem, start in zip(problems, starts, strict=True):
            left = None if deadline is None else max(deadline - time.monotonic(), 1e-9)
            interrupted = bool(results) and results[-1].status == "interrupted"
            result = solve(
                problem,
                solver=self.solver,
                tol=self.tol,
                atol=self.atol,
                max_iter=self.max_iter,
                max_seconds=1e-9 if interrupted else left,
                random_state=self.random_state,
                progress=bool(self.progress),
                n_threads=self.n_threads,
                start=start,
                warn=False,
            )
            results.append(replace(result, status="interrupted") if interrupted else result)
        self._keep(results)
        short = [result for result in results if result.status != "certified"]
        if short:
            worst = max(short, key=lambda result: result.certificate.relative_gap)
            of = f"{len(short)} of {len(results)} classes: " if len(results) > 1 else ""
            warnings.warn(of + not_certified(worst), NotCertifiedWarning, stacklevel=3)

    def _starts(self, problems: list[Problem]) -> list[Any]:
        """The last fit's solution for a warm start, where shapes agree."""
        if not (self.warm_start and hasattr(self, "coef_")):
            return [None] * len(problems)
        w, b, alpha = np.atleast_2d(self.coef_), np.ravel(self.intercept_), np.atleast_2d(self.dual_coef_)
        fits = len(w) == len(problems) and problems[0].shape == (alpha.shape[1], w.shape[1])
        return list(zip(w, b, alpha, strict=True)) if fits else [None] * len(problems)

    def _keep(self, results: list[Result]) -> None:
        several = len(results) > 1
        self.coef_ = np.stack([r.w for r in results])
        self.intercept_: Any = np.array([r.b for r in results])
        self.dual_coef_ = np.stack([r.alpha for r in results])
        self.n_iter_ = np.array([r.n_iter for r in results]) if several else results[0].n_iter
        self.trace_ = [r.trace for r in results] if several else results[0].trace
        self.certificate_ = (
            Certificate.combined([r.certificate for r in results]) if several else results[0].certificate
        )

    # Predicting ---------------------------------------------------------------------------------------------------

    def _scores(self, X: Any) -> NDArray[Any]:
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse=["csr", "csc"], dtype=[np.float64, np.float32], reset=False)
        scores = safe_sparse_dot(X, np.atleast_2d(self.coef_).T, dense_output=True) + self.intercept_
        return np.asarray(scores)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
