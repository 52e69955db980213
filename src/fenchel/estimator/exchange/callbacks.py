"""scikit-learn's callbacks (since 1.9) on our fits: every certificate is a task of the fit."""

from __future__ import annotations

import logging
from collections.abc import Callable
from importlib.util import find_spec
from threading import Lock
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.metaestimators import available_if

from fenchel.data.typing import MatrixLike, VectorLike
from fenchel.problem.checks import require_count
from fenchel.solver import Check, Result

if TYPE_CHECKING:
    from fenchel.estimator.base import LinearEstimator

LOG = logging.getLogger("fenchel")


def _has_callbacks(model: object) -> bool:
    return find_spec("sklearn.callback") is not None


class Watched:
    """Estimators with `set_callbacks`: that of scikit-learn's mixin, imported on demand, since it loads rich."""

    @available_if(_has_callbacks)  # type: ignore[untyped-decorator]
    def set_callbacks(self, *callbacks: Any) -> Self:
        """Set scikit-learn's callbacks, which are called at every certificate of a fit; none removes them."""
        from sklearn.callback import CallbackSupportMixin

        CallbackSupportMixin.set_callbacks(self, *callbacks)
        return self


class GapMonitor:
    """A scikit-learn callback that keeps the proven gap of every check of a fit.

    `model.set_callbacks(GapMonitor())`, with scikit-learn 1.9 or later. The rows are also sent to the logger
    "fenchel", with level INFO. Fits in other processes keep their rows there.

    Parameters
    ----------
    every : int, optional
        Certify every so many steps; by default where the solver chooses to.
    stop_at : float, optional
        End a fit (of one problem) when its relative gap is at most this.

    Attributes
    ----------
    rows : list of dict
        Of each check: run (the number of the outermost fit), estimator, iteration, seconds, primal, dual, gap and
        nonzeros.
    """

    def __init__(self, every: int | None = None, stop_at: float | None = None) -> None:
        if every is not None:
            require_count(every, "every", "steps")
        if stop_at is not None and not stop_at >= 0.0:
            raise ValueError(f"stop_at must be a number >= 0 or None, got {stop_at!r}")
        self.every, self.stop_at = every, stop_at
        self.rows: list[dict[str, Any]] = []
        self._runs: dict[Any, int] = {}

    def setup(self, estimator: Any, context: Any) -> None:
        """A fit begins."""
        self._runs[context.root_uuid] = len(self._runs)

    def teardown(self, estimator: Any, context: Any) -> None:
        """A fit has ended."""

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Nothing is known yet."""

    def on_fit_task_end(self, estimator: Any, context: Any) -> bool:
        """Keep the row of a check; whether the fit ends here."""
        check = getattr(context, "fenchel_check", None)
        if check is None:  # of the whole fit, or of another estimator
            return False
        numbers = {name: getattr(check, name) for name in ROW}
        run = self._runs.setdefault(context.root_uuid, len(self._runs))
        self.rows.append({"run": run, "estimator": type(estimator).__name__, **numbers})
        LOG.info("%s: step %d, objective %.10g, gap %.3g", type(estimator).__name__, *[numbers[k] for k in SHOWN])
        return self.stop_at is not None and bool(check.gap <= self.stop_at * abs(check.primal))


ROW = ("iteration", "seconds", "primal", "dual", "gap", "nonzeros")
SHOWN = ("iteration", "primal", "gap")


def watched(
    model: LinearEstimator,
    X: MatrixLike,
    y: VectorLike,
    sample_weight: VectorLike | None,
    count: int,
    fit: Callable[[], list[Result]],
) -> list[Result]:
    """A fit of so many problems, with the callbacks that are set told of every check."""
    if not getattr(model, "_skl_callbacks", None):
        return fit()
    from sklearn.callback import with_callbacks

    told: list[Result] = with_callbacks(_told)(model, X, y, sample_weight, count, fit)
    return told


def _told(
    model: Any,
    X: MatrixLike,
    y: VectorLike,
    sample_weight: VectorLike | None,
    count: int,
    fit: Callable[[], list[Result]],
) -> list[Result]:
    from sklearn.callback import CallbackSupportMixin

    context, lock = CallbackSupportMixin._init_callback_context(model, max_subtasks=None), Lock()
    data: dict[str, Any] = {"estimator": model, "X": X, "y": y}
    data["metadata"] = None if sample_weight is None else {"sample_weight": sample_weight}
    context.call_on_fit_task_begin(**data)

    def of_check(check: Check) -> bool:
        with lock:  # classes may be fitted in threads
            task = context.subcontext(task_name="certificate")
            task.fenchel_check = check
            task.call_on_fit_task_begin(**data)
            known = (lambda: _attributes(model, check)) if count == 1 else None
            stop = task.call_on_fit_task_end(**data, reconstruction_attributes=known)
        return bool(stop) and count == 1

    periods = [each.every for each in model._skl_callbacks if isinstance(each, GapMonitor) and each.every]
    model._watching = {"callback": of_check} | ({"check_every": min(periods)} if periods else {})
    try:
        results = fit()
    finally:
        del model._watching
    context.call_on_fit_task_end(**data)
    return results


def _attributes(model: Any, check: Check) -> dict[str, Any]:
    """What a model needs to predict as if the fit had ended at this check."""
    w, b = np.atleast_2d(check.w), np.atleast_1d(check.b)
    constant = model._objective().constant
    if constant:
        w, b = w[:, :-1], constant * w[:, -1]
    is_regression = not hasattr(model, "classes_")
    return {"coef_": w[0] if is_regression else w, "intercept_": float(b[0]) if is_regression else b}
