"""The stop rule, the trace, and the result of a solver."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from fenchel.certificate import Certificate, MarginInterval
from fenchel.certificate.evidence import Evidence
from fenchel.data.typing import Indices, Vector
from fenchel.problem.checks import shown
from fenchel.problem.vectors import frozen
from fenchel.steps.base import Model


class NotCertifiedWarning(ConvergenceWarning):  # type: ignore[misc]
    """A fit ended before its certificate reached the tolerance; the message has the gap."""


@dataclass(frozen=True)
class Stop:
    """The stop rule of all solvers: gap <= tol |P|, or gap <= atol, or P zero up to rounding (`Certificate.vanishes`),
    or too many steps, or too many seconds.
    """

    tol: float = 1e-4
    atol: float = 0.0
    max_iter: int | None = None
    max_seconds: float | None = None

    def __post_init__(self) -> None:
        for name in ("tol", "atol"):
            value = getattr(self, name)
            if not (_is_number(value) and value >= 0):
                raise ValueError(f"{name} must be a number >= 0, got {shown(value)}")
        if self.max_iter is not None and not (
            isinstance(self.max_iter, int | np.integer) and self.max_iter >= 0 and not isinstance(self.max_iter, bool)
        ):
            raise ValueError(f"max_iter must be an integer >= 0 or None, got {shown(self.max_iter)}")
        if self.max_seconds is not None and not (_is_number(self.max_seconds) and self.max_seconds > 0):
            raise ValueError(f"max_seconds must be a positive number or None, got {shown(self.max_seconds)}")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


@dataclass(frozen=True)
class Row:
    """One row of the trace."""

    iteration: int
    seconds: float
    primal: float
    dual: float
    gap: float
    nonzeros: int


@dataclass(frozen=True)
class Check(Row):
    """The argument of a callback: the row of the trace, and the best model so far."""

    w: Vector = field(repr=False)
    b: Any = field(repr=False)


class Trace(Sequence[Row]):
    """The history of a run, one row per check. Columns by name: `trace["gap"]`. `checking`: total seconds of checks."""

    def __init__(self) -> None:
        self._rows: list[Row] = []
        self.checking = 0.0

    def append(self, row: Row) -> None:
        """Add a row, replacing one of the same iteration; weights are not stored."""
        if self._rows and self._rows[-1].iteration == row.iteration:
            self._rows.pop()
        self._rows.append(row if type(row) is Row else Row(*(getattr(row, name) for name in COLUMNS)))

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            if key not in COLUMNS:
                raise KeyError(f"the trace has no column {key!r}; it has {', '.join(COLUMNS)}")
            return np.array([getattr(row, key) for row in self._rows])
        return self._rows[key]

    def __repr__(self) -> str:
        return f"Trace({len(self)} checks)"


def counted(count: int, what: str) -> str:
    """A number of things: "1 step", "2 steps"."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


COLUMNS = ("iteration", "seconds", "primal", "dual", "gap", "nonzeros")
Callback = Callable[[Check], Any]


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """A solved problem: the best model found, and its certificate.

    Attributes
    ----------
    w : array of d weights
        k x d for a `MulticlassProblem`.
    b : float
        The intercept; k of them for a `MulticlassProblem`.
    alpha : array of n multipliers
        n x k for a `MulticlassProblem`.
    certificate : Certificate
    trace : Trace
    n_iter : int
        Steps of the solver.
    solver : str
        The solver that found the model.
    status : str
        "certified", or why the run ended before: "max_iter", "max_seconds", "interrupted", "callback", "stalled" (the
        gap is rounding), "gave_up" (the solver finds no better model; another may), "overflow", "precision" (the
        weights are rounded to single precision), or "separated" (no model attains the infimum, which is 0).
    margin : MarginInterval, optional
        The proof that the samples are separable, if the status is "separated".
    """

    model: Model
    certificate: Certificate
    trace: Trace
    n_iter: int
    solver: str
    status: str
    multipliers: Vector | None = None
    """alpha; None if computed on demand."""
    margin: MarginInterval | None = None

    @cached_property
    def w(self) -> Vector:
        return self.model.dense()  # a copy that the caller may change

    @property
    def b(self) -> Any:
        return self.model.b

    @cached_property
    def alpha(self) -> Vector:
        if self.multipliers is not None:
            return self.multipliers.copy()
        evidence = self.certificate.evidence
        if not isinstance(evidence, Evidence):
            raise ValueError("this result has no multipliers: its certificate has only its numbers")
        return evidence.alpha.copy()

    def write(self, w: Vector) -> None:
        """Write the weights into an array of zeros; cheaper than `w` if most are zero."""
        if "w" in self.__dict__:  # a caller may have changed them
            w[:] = self.w
        else:
            self.model.write(w)

    def nonzeros(self) -> tuple[Indices, Vector]:
        """Indices (in any order) and values of the nonzero weights."""
        return self.model.nonzeros()

    def in_single_precision(self) -> Result:
        """The result with weights and intercept rounded to float32, and the certificate of these.

        Status "precision" where the rounded model misses the tolerance. The same result if single precision cannot hold
        the numbers, or if rounding leaves the domain of the penalty.
        """
        with np.errstate(over="ignore", under="ignore"):
            w, b = (np.asarray(part, dtype=np.float32).astype(np.float64) for part in (self.w, self.b))
        if not (np.all(np.isfinite(w)) and np.all(np.isfinite(b))):
            return self
        model = Model(frozen(w), float(b) if b.ndim == 0 else frozen(b))
        certificate = self.certificate.at(model.weights, model.b)
        if not np.isfinite(certificate.primal):
            return self
        status = "precision" if self.status == "certified" and not certificate.ok else self.status
        return replace(self, model=model, certificate=certificate, status=status)

    def without_data(self) -> Result:
        """The certificate's numbers, the trace and the status, for a warning."""
        nothing = np.zeros(0)
        certificate = replace(self.certificate, evidence=None)
        return replace(self, model=Model(nothing, 0.0), certificate=certificate, multipliers=nothing)

    def __repr__(self) -> str:
        c = self.certificate
        return (
            f"Result(solver={self.solver!r}, status={self.status!r}, n_iter={self.n_iter}, "
            f"primal={c.primal:.6g}, gap={c.gap:.3g})"
        )

    def __str__(self) -> str:
        """The solver and its steps, the objective, and what is proven, in two lines."""
        end = "" if self.status == "certified" else f", ended by {self.status!r}"
        steps, verdict = counted(self.n_iter, "step"), str(self.certificate).splitlines()[0]
        return f"{self.solver}, {steps}{end}: objective {self.certificate.primal:.10g}.\n{verdict}"

    def __getstate__(self) -> dict[str, Any]:
        """Weights and multipliers, since a pickle has no data to compute them from."""
        state = {**self.__dict__, "model": Model(self.w, self.b), "multipliers": self.alpha}
        return {name: value for name, value in state.items() if name not in ("w", "alpha")}
