"""LinearClassifier and LinearRegressor: any loss with any penalty."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import partial

from fenchel.estimator.base import FitParameters
from fenchel.estimator.classification import LogisticProbabilities
from fenchel.estimator.documentation import documented
from fenchel.estimator.exchange.callbacks import Watched
from fenchel.estimator.names import resolve_loss, resolve_penalty, resolve_regression_loss
from fenchel.estimator.objective import Objective
from fenchel.estimator.regression import Regression
from fenchel.problem.losses import Loss
from fenchel.problem.penalties import Penalty


@dataclass(eq=False, repr=False)
class GeneralParameters(FitParameters):
    """Parameters of both estimators."""

    loss: str | Loss = "squared"
    penalty: str | Penalty = "l2"
    lam: float | None = None
    _: KW_ONLY
    atol: float = 0.0
    progress: bool = False


@documented("classes")
class LinearClassifier(Watched, GeneralParameters, LogisticProbabilities):
    """A linear classifier with any loss and any penalty, certified.

    Minimises the weighted mean loss plus the penalty, with an unpenalised intercept; one-vs-rest for more than two
    classes.

    Parameters
    ----------
    loss : str or Loss, default "logistic"
        "hinge", "squared_hinge", "logistic", ... or an object such as SmoothedHinge(0.5).
    penalty : str or Penalty, default "l2"
        "l2", "l1", "elastic_net", "entropy", "fused_l1", "lp_squared", "non_negative_l1" or "non_negative_elastic_net"
        with weight `lam`, or an object; penalties on groups are objects, such as GroupL2(0.1, groups) or
        SparseGroup(0.1, groups).
    lam : float, optional
        Weight of a penalty given by name; 1 / (sum of the weights) by default, which is C = 1 in scikit-learn.
    tol, atol : float
        The fit ends when its certified gap is at most tol |objective| or atol.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from fenchel import LinearClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LinearClassifier(loss="logistic", tol=1e-6).fit(scale(X), y)
    >>> model.certificate_.ok
    True
    """

    loss: str | Loss = "logistic"

    def _objective(self) -> Objective:
        penalty = partial(resolve_penalty, self.penalty, self.lam)
        return Objective(resolve_loss(self.loss), penalty, self.fit_intercept)


@documented("target")
class LinearRegressor(Watched, GeneralParameters, Regression):
    """A linear regression with any loss and any penalty, certified.

    Minimises the weighted mean loss plus the penalty, with an unpenalised intercept.

    Parameters
    ----------
    loss : str or Loss, default "squared"
        "squared", "absolute", "huber", "epsilon_insensitive", ... or an object such as Pinball(0.9).
    penalty, lam, tol, atol
        As in `LinearClassifier`.
    """

    def _objective(self) -> Objective:
        penalty = partial(resolve_penalty, self.penalty, self.lam)
        return Objective(resolve_regression_loss(self.loss), penalty, self.fit_intercept)
