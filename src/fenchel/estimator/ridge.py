"""Ridge regression and its classifier, by the names and with the constants of scikit-learn's."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fenchel.estimator.classification import Classification
from fenchel.estimator.objective import no_bounds_on_weights, positive_alpha
from fenchel.estimator.regression import Regression
from fenchel.problem import Problem
from fenchel.problem.losses import Loss, Squared
from fenchel.problem.penalties import L2, Penalty
from fenchel.problem.scaling import lam_from_sum
from fenchel.solver import Result

SOLVERS = frozenset({"svd", "cholesky", "lsqr", "sparse_cg", "sag", "saga", "lbfgs"})


def ridge_penalty(alpha: Any, total_weight: float) -> Penalty:
    """sum_i s_i r_i^2 + alpha |w|^2 divided by 2 W: squares are twice our loss, and |w|^2 twice the half square."""
    return L2(lam_from_sum(2.0 * positive_alpha(alpha), total_weight, loss_factor=2.0))


class RidgeRegression(Regression):
    """What Ridge and its cross-validated form share: one problem for each target, each with its alpha."""

    _several_targets: ClassVar[bool] = True

    def _alphas(self) -> NDArray[Any]:
        """One alpha, or one for each target."""
        raise NotImplementedError

    def _loss(self) -> Loss:
        return Squared()

    def _penalty(self, total_weight: float) -> Penalty:
        return ridge_penalty(self._alphas()[0], total_weight)

    def _problems(self, X: Any, y: Any, sample_weight: Any) -> list[Problem]:
        problems = super()._problems(X, y, sample_weight)
        alphas = self._alphas()
        if len(alphas) == 1:
            return problems
        if len(alphas) != len(problems):
            raise ValueError(f"alpha has {len(alphas)} entries, but y has {len(problems)} targets")
        total = problems[0].total_weight
        return [p.replace(penalty=ridge_penalty(alpha, total)) for p, alpha in zip(problems, alphas, strict=True)]

    def _keep(self, results: list[Result], constant: float) -> None:
        super()._keep(results, constant)
        self.solver_ = results[0].solver

    def _n_iter(self, counts: NDArray[np.int_]) -> Any:
        return counts


class Ridge(RidgeRegression):
    """Least squares with an L2 penalty, certified.

    Minimises, as scikit-learn's class of this name does, ::

        sum_i s_i (x_i.w + b - y_i)^2 + alpha |w|_2^2

    for each target, with an intercept b that is not penalised.

    Parameters
    ----------
    alpha : float or array of one for each target, default 1.0
    fit_intercept : bool, default True
    copy_X : bool, default True
        X is never changed, and copied only if it is not stored by rows; either value will do.
    max_iter : int, optional
        Most steps of our solver.
    tol : float, default 1e-4
        The fit ends when its certified gap is at most tol times the objective. scikit-learn's direct solvers are
        exact to rounding: a smaller tol comes as close.
    solver : str, default "auto"
        scikit-learn's names ("svd", "cholesky", "lsqr", ...) are accepted and mean "auto".
    positive : bool, default False
        True is refused: no solver here keeps w >= 0.
    random_state : int, RandomState or None
    verbose : int, default 0
        Anything but 0 shows a progress bar.
    max_seconds : float, optional
    warm_start : bool, default False
        Begin at the last fit's solution if shapes agree.
    n_threads : int or None, default 1

    Attributes
    ----------
    coef_ : array of shape (d,), or (targets, d)
    intercept_ : float, or array of shape (targets,)
    dual_coef_ : array of shape (n,), or (targets, n)
        The residuals y_i - x_i.w - b, which are the multipliers of the mean form.
    certificate_ : Certificate
        Of the objective divided by twice the sum of the weights; summed over the targets.
    trace_ : Trace, or a list of them
    n_iter_ : array of the steps for each target
    solver_ : str
        The solver that was used.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from fenchel import Ridge
    >>> X, y = load_diabetes(return_X_y=True)
    >>> Ridge(alpha=0.1, tol=1e-8).fit(X, y).certificate_.ok
    True
    """

    _their_solvers: ClassVar[frozenset[str]] = SOLVERS

    def __init__(
        self,
        alpha: Any = 1.0,
        *,
        fit_intercept: bool = True,
        copy_X: bool = True,
        max_iter: int | None = None,
        tol: float = 1e-4,
        solver: Any = "auto",
        positive: bool = False,
        random_state: Any = None,
        verbose: int = 0,
        max_seconds: float | None = None,
        warm_start: bool = False,
        n_threads: int | None = 1,
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.copy_X = copy_X
        self.max_iter = max_iter
        self.tol = tol
        self.solver = solver
        self.positive = positive
        self.random_state = random_state
        self.verbose = verbose
        self.max_seconds = max_seconds
        self.warm_start = warm_start
        self.n_threads = n_threads

    def _check_parameters(self) -> None:
        no_bounds_on_weights(self.positive)
        for alpha in self._alphas():
            positive_alpha(alpha)

    def _alphas(self) -> NDArray[Any]:
        return np.ravel(np.asarray(self.alpha, dtype=object))


class RidgeClassifier(Classification):
    """Ridge regression on labels -1 and +1, certified.

    Minimises sum_i s_i c_i (x_i.w + b - y_i)^2 + alpha |w|_2^2 for each class against the rest (once for two classes),
    as scikit-learn's class of this name does, with the weights c_i of the classes.

    Parameters
    ----------
    alpha : float, default 1.0
    fit_intercept, copy_X, max_iter, tol, solver, positive, random_state, verbose, max_seconds, warm_start, n_threads
        As in `Ridge`.
    class_weight : dict, "balanced" or None

    Attributes
    ----------
    coef_ : array of shape (d,) for two classes, or (classes, d)
        As scikit-learn's is, which says (1, d).
    intercept_ : array of shape (1,), or (classes,)
    dual_coef_ : array of shape (1, n), or (classes, n)
    classes_ : the labels
    certificate_ : Certificate
        Of the objective divided by twice the sum of the weights; summed over the classes.
    trace_ : Trace, or a list of them
    n_iter_ : array of the steps for each class
    solver_ : str

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from fenchel import RidgeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = RidgeClassifier().fit(X, y)
    >>> len(model.certificate_.parts)
    3
    """

    _their_solvers: ClassVar[frozenset[str]] = SOLVERS

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        fit_intercept: bool = True,
        copy_X: bool = True,
        max_iter: int | None = None,
        tol: float = 1e-4,
        class_weight: Any = None,
        solver: Any = "auto",
        positive: bool = False,
        random_state: Any = None,
        verbose: int = 0,
        max_seconds: float | None = None,
        warm_start: bool = False,
        n_threads: int | None = 1,
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.copy_X = copy_X
        self.max_iter = max_iter
        self.tol = tol
        self.class_weight = class_weight
        self.solver = solver
        self.positive = positive
        self.random_state = random_state
        self.verbose = verbose
        self.max_seconds = max_seconds
        self.warm_start = warm_start
        self.n_threads = n_threads

    def _check_parameters(self) -> None:
        no_bounds_on_weights(self.positive)
        positive_alpha(self.alpha)

    def _loss(self) -> Loss:
        return Squared()

    def _penalty(self, total_weight: float) -> Penalty:
        return ridge_penalty(self.alpha, total_weight)

    def _keep(self, results: list[Result], constant: float) -> None:
        super()._keep(results, constant)
        if len(results) == 1:
            self.coef_ = self.coef_[0]
        self.solver_ = results[0].solver

    def _n_iter(self, counts: NDArray[np.int_]) -> Any:
        return counts
