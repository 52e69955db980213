"""Total-variation denoising and trend filtering of signals and images."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from fenchel.certificate import Certificate
from fenchel.data import Design
from fenchel.data.convert import as_numbers, unmasked
from fenchel.data.typing import Matrix, MatrixLike, Vector, VectorLike
from fenchel.estimator.base import combined_certificate, warn_short
from fenchel.estimator.objective import positive
from fenchel.problem import Problem
from fenchel.problem.losses import Squared
from fenchel.problem.penalties import FusedL1
from fenchel.solver import Result, solve_many


@dataclass(frozen=True)
class Denoised:
    """A denoised signal or image, and its certificate."""

    values: Vector = field(repr=False)
    certificate: Certificate
    n_iter: int
    solver: str


def denoise(
    y: VectorLike,
    weight: float,
    *,
    order: int = 1,
    tol: float = 1e-4,
    max_iter: int | None = None,
    max_seconds: float | None = None,
    n_threads: int | None = 1,
) -> Denoised:
    """Denoise a signal or an image by total variation, certified.

    Minimises 1/2 |w - y|^2 + weight |D w|_1, D the differences of neighbours in a signal or an image (anisotropic total
    variation). The certificate is that of this objective divided by the number of entries.

    Parameters
    ----------
    y : array of one or two dimensions
        Colour images one channel at a time.
    weight : float
        n lam, for n entries and the lam of `penalties.FusedL1`.
    order : int, default 1
        For signals: trend filtering with differences of this order; 2 gives piecewise linear w, 3 piecewise quadratic.
    tol : float, default 1e-4
        The tolerance for the relative gap; a signal of order 1 is exact up to rounding for any tol.
    max_iter, max_seconds, n_threads
        As in `solve`.

    Returns
    -------
    Denoised
        `values` in the shape of y, and `certificate`.

    Examples
    --------
    >>> import fenchel as fl
    >>> fl.denoise([0.0, 0.2, 0.1, 1.1, 1.0, 0.9], weight=0.3).values
    array([0.2, 0.2, 0.2, 0.9, 0.9, 0.9])
    """
    array = as_numbers(unmasked(y, "y"), "y")
    if array.ndim not in (1, 2) or array.size < 2:
        raise ValueError(
            f"y must be a signal or an image with at least two entries, got an array of shape {array.shape}; "
            "denoise the channels of a colour image one at a time"
        )
    penalty = _penalty(weight, array.shape, order)
    options = {"tol": tol, "max_iter": max_iter, "max_seconds": max_seconds, "n_threads": n_threads}
    (result,) = _solved(array.reshape(1, -1), penalty, options)
    return Denoised(result.w.reshape(array.shape), result.certificate, result.n_iter, result.solver)


def _penalty(weight: object, shape: tuple[int, ...], order: int) -> FusedL1:
    n = int(np.prod(shape))
    lam = positive("weight", weight, "without a penalty there is nothing to denoise") / n
    if len(shape) == 1:
        return FusedL1.of_order(lam, n, order)
    if order != 1:
        raise ValueError(f"order={order!r} would have no effect: images have differences of order 1")
    return FusedL1.of_image(lam, shape)  # type: ignore[arg-type]


def _solved(rows: Matrix, penalty: FusedL1, options: dict[str, Any]) -> list[Result]:
    """Denoise each row; one warning for all that miss the tolerance."""
    design = Design(sp.eye_array(rows.shape[1], format="csr"))
    problems = [Problem(design, row, Squared(), penalty) for row in rows]
    results = solve_many(problems, **options)
    warn_short(results, "signals")
    return results


@dataclass(eq=False, repr=False)
class TotalVariationDenoiser(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A transformer that denoises every row of X by total variation, certified.

    Each row is a signal (or a flattened image) y, and becomes the w that minimises ::

        1/2 |w - y|^2 + weight |D w|_1

    Rows are independent: `fit` denoises the training rows to certify them, and `transform` any others. For a single
    signal or image use the function `fenchel.denoise`.

    Parameters
    ----------
    weight : float, default 0.1
        n lam, for n entries per row and the lam of `penalties.FusedL1`; of the size of the noise.
    shape : (height, width), optional
        Rows are images of this shape, flattened row by row.
    order : int, default 1
        For signals: differences of this order (trend filtering).
    tol : float, default 1e-4
        The certified gap of each row is at most tol times its objective.
    max_iter : int, optional
        The largest number of steps for each row.
    max_seconds : float, optional
        Time limit for all rows.
    n_threads : int or None, default 1

    Attributes
    ----------
    certificate_ : Certificate
        Of the training rows: of the sum of their objectives, each divided by the number of entries. Its `parts` are
        the certificates of the rows, if there are several.
    n_iter_ : int
        The largest number of steps of a row.
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import TotalVariationDenoiser
    >>> steps = np.repeat([[0.0, 1.0], [2.0, 2.5]], 50, axis=1)
    >>> noisy = steps + 0.1 * np.random.default_rng(0).normal(size=steps.shape)
    >>> clean = TotalVariationDenoiser(weight=0.3).fit_transform(noisy)
    >>> bool(np.abs(clean - steps).mean() < 0.5 * np.abs(noisy - steps).mean())
    True
    """

    weight: float = 0.1
    _: KW_ONLY
    shape: tuple[int, int] | None = None
    order: int = 1
    tol: float = 1e-4
    max_iter: int | None = None
    max_seconds: float | None = None
    n_threads: int | None = 1

    def fit(self, X: MatrixLike, y: object = None) -> Self:
        """Denoise the rows of X, and keep their certificates."""
        self._fit(X)
        return self

    def fit_transform(self, X: MatrixLike, y: object = None, **fit_params: object) -> Matrix:
        """The denoised rows of X, and their certificates in `certificate_`."""
        return self._fit(X)

    def transform(self, X: MatrixLike) -> Matrix:
        """The denoised rows of X; a warning if one misses the tolerance."""
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        return np.vstack([result.w for result in self._results(rows)])

    def _fit(self, X: MatrixLike) -> Matrix:
        results = self._results(validate_data(self, X, dtype=np.float64, ensure_min_features=2))
        self.certificate_ = combined_certificate(results)
        self.n_iter_ = max(result.n_iter for result in results)
        return np.vstack([result.w for result in results])

    def _results(self, X: Matrix) -> list[Result]:
        shape = (X.shape[1],) if self.shape is None else tuple(self.shape)
        if int(np.prod(shape)) != X.shape[1]:
            raise ValueError(f"shape={self.shape!r} has {int(np.prod(shape))} entries, but X has {X.shape[1]} columns")
        options = {name: getattr(self, name) for name in ("tol", "max_iter", "max_seconds", "n_threads")}
        return _solved(X, _penalty(self.weight, shape, self.order), options)
