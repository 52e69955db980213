"""KernelClassifier: any loss, with functions of a kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, Self

import numpy as np

from fenchel.data.typing import Matrix, MatrixLike, VectorLike
from fenchel.estimator.base import (
    Features,
    FitParameters,
    LinearPredictor,
    StartLike,
    checked_features,
    combined_certificate,
    solver_options,
    steps_of,
    warn_short,
)
from fenchel.estimator.classification import Codes, LogisticProbabilities, class_problems, encoded, warn_empty
from fenchel.estimator.documentation import documented
from fenchel.estimator.names import resolve_loss, resolve_penalty
from fenchel.estimator.objective import Objective
from fenchel.kernel import Gram, Kernel, KernelLike, Precomputed, Samples, kernel_of
from fenchel.kernel.gram import require_cache_size
from fenchel.problem import KernelProblem, Problem
from fenchel.problem.losses import Loss
from fenchel.problem.penalties import L2
from fenchel.solver import Result
from fenchel.solver.many import solve_classes


@dataclass(eq=False, repr=False, kw_only=True)
class KernelParameters(FitParameters):
    """Parameters of the kernel, by the names of scikit-learn's SVC."""

    kernel: KernelLike = "rbf"
    gamma: float | str | None = "scale"
    degree: int = 3
    coef0: float = 0.0
    cache_size: float = 200.0
    atol: float = 0.0
    progress: bool = False


class KernelModel(LogisticProbabilities):
    """Attributes that a fit sets."""

    alpha_: Matrix


@documented("kernel_classes")
class KernelClassifier(KernelParameters, KernelModel):
    """A classifier by functions of a kernel, with any loss, certified.

    Minimises the weighted mean loss of f(x) + b plus lam/2 |f|_H^2, with an unpenalised intercept b; one-vs-rest for
    more than two classes. With the hinge loss and lam = 1/(C n) it is scikit-learn's SVC for two classes.

    Parameters
    ----------
    loss : str or Loss, default "hinge"
        "hinge", "squared_hinge", "logistic", ... or an object such as SmoothedHinge(0.5).
    lam : float, optional
        Weight of the penalty; 1 / (sum of the weights) by default, which is C = 1 in scikit-learn.
    kernel, gamma, degree, coef0, cache_size
        As in `KernelProblem`.
    tol, atol : float
        The fit ends when its certified gap is at most tol |objective| or atol.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from fenchel import KernelClassifier
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> model = KernelClassifier().fit(X, y)
    >>> model.certificate_.ok
    True
    """

    loss: str | Loss = "hinge"
    lam: float | None = None
    _: KW_ONLY

    def _check_parameters(self) -> None:
        self._kernel()
        require_cache_size(self.cache_size)

    def _kernel(self) -> Kernel:
        return kernel_of(self.kernel, self.gamma, self.degree, self.coef0)

    @property
    def _is_pairwise(self) -> bool:
        return is_pairwise(self.kernel)

    def _objective(self) -> Objective:
        return Objective(resolve_loss(self.loss), partial(resolve_penalty, "l2", self.lam), self.fit_intercept)

    def fit(self, X: MatrixLike, y: VectorLike, sample_weight: VectorLike | None = None) -> Self:
        """Fit to the labels y; a weight of 2 repeats the row."""
        features, codes = encoded(self, X, y)
        problems = self._problems(features, codes, sample_weight)
        warn_empty(self.classes_, problems)
        results = solve_classes(problems, self._starts(problems), True, solver_options(self))
        self._store(results, problems[0].gram)
        warn_short(results, "classes")
        return self

    def _problems(self, X: MatrixLike, codes: Codes, sample_weight: VectorLike | None) -> list[KernelProblem]:
        """Those of a linear classifier, with functions of one shared Gram matrix."""
        gram = Gram(X, self._kernel(), self.cache_size)
        problems = []
        for linear in class_problems(self, X, codes, sample_weight):
            if not (isinstance(linear, Problem) and isinstance(linear.penalty, L2)):
                raise ValueError(f"loss must be a loss of one score, got {self.loss!r}")
            parts = linear.y, linear.loss, linear.penalty
            problems.append(KernelProblem(gram, *parts, sample_weight=linear.weights, intercept=linear.intercept))
        return problems

    def _starts(self, problems: Sequence[KernelProblem]) -> list[StartLike]:
        """The last fit, if `warm_start` is set and there are as many samples and classes."""
        n, last = len(problems[0].gram), self.__dict__.get("alpha_")
        if not self.warm_start or last is None or last.shape != (len(problems), n):
            return [None] * len(problems)
        beta = np.zeros((len(problems), n))
        beta[:, self.support_] = self.dual_coef_
        return list(zip(beta, self.intercept_, last, strict=True))

    def _store(self, results: Sequence[Result], gram: Gram) -> None:
        beta = np.vstack([result.w for result in results])
        self.support_ = np.flatnonzero(np.any(beta != 0.0, axis=0))
        self.dual_coef_ = beta[:, self.support_]
        self.alpha_ = np.vstack([result.alpha for result in results])
        self.intercept_ = np.array([result.b for result in results], dtype=np.float64)
        self.kernel_ = gram.kernel
        of_all = self._is_pairwise
        self.support_vectors_ = np.zeros((0, 0)) if of_all else gram.samples.take(self.support_).matrix
        self.n_iter_ = steps_of(results) if len(results) > 1 else results[0].n_iter
        self.trace_ = [result.trace for result in results] if len(results) > 1 else results[0].trace
        self.certificate_ = combined_certificate(results)

    def _scores(self, X: MatrixLike) -> Matrix:
        return function_scores(self, checked_features(self, X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._is_pairwise
        return tags


def is_pairwise(kernel: KernelLike | None) -> bool:
    """Whether X is the Gram matrix."""
    return isinstance(kernel, Precomputed) or (isinstance(kernel, str) and kernel == "precomputed")


def function_scores(model: LinearPredictor, X: Features) -> Matrix:
    """Scores of a fitted model from its `kernel_`, `support_vectors_`, `dual_coef_` and `intercept_`, a column each."""
    out = np.tile(model.intercept_, (X.shape[0], 1))
    if isinstance(model.kernel_, Precomputed):
        return np.asarray(out + X[:, model.support_] @ model.dual_coef_.T)
    if len(model.support_) == 0:
        return out
    new, old = Samples.of(X), Samples.of(model.support_vectors_)
    for rows in new.chunks(len(old)):
        out[rows] += model.kernel_.block(new.take(rows), old) @ model.dual_coef_.T
    return out
