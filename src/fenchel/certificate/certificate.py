"""The certificate of a model: P, D, gap and rounding, and its consequences."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from html import escape
from math import isfinite
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fenchel.certificate import consequences
from fenchel.certificate.bounds.constructions import Construction
from fenchel.certificate.bounds.rounding import PrimalBound, distance_to_optimum, gap_between
from fenchel.certificate.evidence import Evidence
from fenchel.data.typing import Mask, MatrixLike, Vector

FORMAT = "fenchel-certificate-1"
#: An objective counts as zero up to this gap, relative to the mean loss at scores 0; and absolutely (`vanishes`).
NEGLIGIBLE, NOTHING = 1e-12, 1e-300


class Proof(Protocol):
    """The evidence of a certificate: its consequences for labels, zeros and multipliers."""

    @property
    def problem(self) -> Any: ...
    @property
    def lower(self) -> float: ...
    def labels(self, X: MatrixLike) -> tuple[NDArray[np.int_], Mask]: ...
    def zeros(self) -> Mask: ...
    def multipliers(self) -> tuple[Vector, Vector]: ...
    def at(self, w: Vector, b: Any) -> tuple[PrimalBound, Proof]: ...
    def constructions(self, primal: float) -> dict[str, Construction]: ...


class CertificateError(AssertionError):
    """A gap is negative beyond its rounding bound, or a lower bound above an upper one.

    This is a bug in fenchel; please report it.
    """


@dataclass(frozen=True)
class Certificate:
    """A bound, valid in exact arithmetic, on how far a model is from the optimum of its objective.

    Attributes
    ----------
    primal : float
        The objective at the model.
    dual : float
        The dual objective as computed: minus `rounding`, a lower bound on the objective of every model.
    gap : float
        A bound on primal - optimum; primal - dual plus `rounding`.
    relative_gap : float
        gap / |primal|.
    rounding : float
        The part of the gap that allows for floating-point errors.
    tol : float
        The tolerance for the relative gap.
    atol : float
        The tolerance for the gap; one of the two is enough.
    at_zero : float
        The mean loss where all scores are 0: the scale of the objective.
    how : str
        The construction of the best dual point.
    weights_radius : float
        The weights of the exact optimum lie within this distance (in the norm of the penalty's strong convexity);
        infinite if the penalty is not strongly convex.
    """

    primal: float
    dual: float
    gap: float
    relative_gap: float
    rounding: float
    tol: float
    how: str
    weights_radius: float
    atol: float = 0.0
    at_zero: float = 0.0
    evidence: Proof | None = field(default=None, repr=False, compare=False)
    parts: tuple[Certificate, ...] = field(default=(), repr=False, compare=False)

    @classmethod
    def of(
        cls,
        primal: float,
        upper: float,
        dual: float,
        lower: float,
        *,
        how: str,
        tol: float,
        atol: float = 0.0,
        at_zero: float = 0.0,
        strong_convexity: float = 0.0,
        evidence: Proof | None = None,
    ) -> Certificate:
        """The certificate of P and D as computed, and of their bounds upper >= P and lower <= P*."""
        if not (isfinite(upper) and isfinite(lower)):
            return cls(primal, dual, np.inf, np.inf, np.inf, tol, how, np.inf, atol, at_zero, evidence)
        gap = gap_between(upper, lower)
        relative = gap / abs(primal) if primal else (np.inf if gap else 0.0)
        rounding = max(0.0, gap - (primal - dual))
        radius = distance_to_optimum(gap, strong_convexity)
        return cls(primal, dual, gap, relative, rounding, tol, how, radius, atol, at_zero, evidence)

    @classmethod
    def combined(cls, parts: Sequence[Certificate]) -> Certificate:
        """One certificate for the sum of independent problems (one-vs-rest classes, several targets)."""
        primal, dual, gap, rounding, atol, at_zero = (
            float(sum(getattr(part, name) for part in parts))
            for name in ("primal", "dual", "gap", "rounding", "atol", "at_zero")
        )
        gap += len(parts) * 2.0**-50 * abs(primal)
        relative = gap / abs(primal) if primal else (np.inf if gap else 0.0)
        how = ", ".join(dict.fromkeys(part.how for part in parts))
        radius = float(np.sqrt(sum(part.weights_radius**2 for part in parts)))
        return cls(primal, dual, gap, relative, rounding, parts[0].tol, how, radius, atol, at_zero, parts=tuple(parts))

    def __post_init__(self) -> None:
        if not self.gap >= 0.0:
            raise CertificateError(f"the duality gap {self.gap} is negative beyond its rounding bound {self.rounding}")

    @property
    def ok(self) -> bool:
        """Whether the gap is proven to be at most tol |primal|, or at most atol; or the objective `vanishes`."""
        return bool(self.relative_gap <= self.tol or self.gap <= self.atol) or self.vanishes

    @property
    def proven(self) -> str:
        """What is proven, as a clause for messages."""
        if self.relative_gap > self.tol and self.gap <= self.atol:
            return f"no model lowers the objective by more than {rounded_up(self.gap, 2)}"
        return f"no model lowers the objective by more than {closeness(self.relative_gap)}"

    @property
    def vanishes(self) -> bool:
        """Whether the objective is zero up to rounding, where no relative gap can be proven."""
        return vanishes(self.primal, self.gap, self.rounding, self.at_zero)

    def __getstate__(self) -> dict[str, Any]:
        """The numbers, without the training data behind them."""
        return {**self.__dict__, "evidence": None}

    def __deepcopy__(self, memo: Any) -> Certificate:
        """Certificates are immutable."""
        return self

    def at(self, w: Vector, b: Any) -> Certificate:
        """The certificate of another model of the same `Problem` or `MulticlassProblem`, by the same bound on P*.

        An error if X has changed since this one was made.
        """
        primal, evidence = self._evidence.at(w, b)
        return Certificate.of(
            primal.value,
            primal.upper,
            self.dual,
            evidence.lower,
            how=self.how,
            tol=self.tol,
            atol=self.atol,
            at_zero=self.at_zero,
            strong_convexity=evidence.problem.penalty.strong_convexity,
            evidence=evidence,
        )

    # Consequences -------------------------------------------------------------------------------------------------

    def labels(self, X: MatrixLike) -> tuple[NDArray[np.int_], Mask]:
        """The label of each row of X, and whether the exact optimum provably predicts the same.

        Labels are -1 and +1; for several classes, the index of the class with the highest score.
        """
        if self.parts:
            return consequences.classes([part._scores for part in self.parts], X)
        return self._evidence.labels(X)

    def zeros(self) -> Mask:
        """Which weights (for `FusedL1`: entries of D w) are provably zero in the exact optimum.

        A combined certificate has a row for each part.
        """
        if self.parts:
            return np.stack([part.zeros() for part in self.parts])
        return self._evidence.zeros()

    def zeros_of_fit(self) -> Mask:
        """The same, right after a fit: by what the solver has computed, without another pass over X."""
        if self.parts:
            return np.stack([part.zeros_of_fit() for part in self.parts])
        evidence = self._evidence
        return evidence.zeros_of_fit() if isinstance(evidence, Evidence) else evidence.zeros()

    def multipliers(self) -> tuple[Vector, Vector]:
        """An interval that provably contains the optimal alpha_i, for each training sample."""
        return self._evidence.multipliers()

    def support_vectors(self) -> tuple[Mask, Mask]:
        """Which training samples provably have alpha_i = 0 at the exact optimum, and which provably have not."""
        low, high = self.multipliers()
        return (low == 0) & (high == 0), (low > 0) | (high < 0)

    def constructions(self) -> dict[str, Construction]:
        """The gap of each construction of a dual point from the model's scores, by name.

        "rescaling" and "Lipschitzing" for norms (L1, groups, fused), "conjugate" for penalties with a finite conjugate
        (L2, elastic net). The certificate's own gap is that of the best dual point of all.
        """
        if self.parts:
            raise ValueError("this certificate is of several problems: call constructions() of each of its parts")
        return self._evidence.constructions(self.primal)

    @property
    def _evidence(self) -> Proof:
        if self.evidence is None:
            raise ValueError(
                "this certificate has only its numbers: it was read from a file (certify the model again with its "
                "data), or nothing is proven about single labels and weights for this kind of problem"
            )
        return self.evidence

    @property
    def _scores(self) -> Evidence:
        evidence = self._evidence
        if not isinstance(evidence, Evidence):
            raise ValueError("labels of a combined certificate need parts with one score per sample")
        return evidence

    # Text ---------------------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        """In 30 characters, which is what scikit-learn's table of fitted attributes shows; the gap is rounded up."""
        if self.ok:
            return f"Certificate(gap={rounded_up(self.gap, 2)}, ok)"
        return f"Certificate(gap={rounded_up(self.gap, 1)}, not ok)"

    def __str__(self) -> str:
        if not np.isfinite(self.gap):
            return "Not certified: no finite bound was found (the objective or its dual overflows)."
        verdict = "Certified" if self.ok else "Not certified to tolerance"
        vanishing = "the objective is zero up to rounding"
        tolerance = f"tol {self.tol:g}" + (f" or atol {self.atol:g}" if self.atol else "")
        lines = [
            f"{verdict}: {vanishing if self.vanishes else self.proven} ({tolerance}).",
            f"objective {self.primal:.10g}; no model has less than {rounded_down(self.primal - self.gap)}; "
            f"gap {self.gap:.3g} (rounding {self.rounding:.1g}; dual point: {self.how}).",
        ]
        if np.isfinite(self.weights_radius):
            lines.append(f"The exact optimum's weights lie within {self.weights_radius:.3g} of these.")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        colour = "#1a7f37" if self.ok else "#9a6700"
        first, *rest = escape(str(self)).splitlines()
        body = "".join(f"<div style='color:#57606a'>{line}</div>" for line in rest)
        return f"<div style='border-left:4px solid {colour};padding:.3em .8em'><b>{first}</b>{body}</div>"

    # Files --------------------------------------------------------------------------------------------------------

    def to_json(self) -> str:
        """The numbers as JSON, infinities as strings."""
        numbers = {f.name: getattr(self, f.name) for f in fields(self) if f.compare}
        return json.dumps({"format": FORMAT, **{k: _out(v) for k, v in numbers.items()}}, indent=2)

    @classmethod
    def from_json(cls, text: str) -> Certificate:
        """Read what `to_json` wrote."""
        try:
            values = json.loads(text)
            if values.pop("format") != FORMAT:
                raise KeyError("format")
            numbers: dict[str, Any] = {k: v if k in ("how", "feasible") else float(v) for k, v in values.items()}
            return cls(**numbers)
        except (KeyError, TypeError, ValueError, AttributeError, CertificateError) as error:
            raise ValueError(f"not a certificate written by fenchel ({error})") from error


def vanishes(primal: float, gap: float, rounding: float, at_zero: float) -> bool:
    """Whether |P| <= rounding and gap <= 1e-12 times the mean loss at scores 0 (constant targets, say).

    P and the gap are then within the rounding of y itself.
    """
    small = abs(primal) <= max(rounding, NOTHING) and gap <= max(NEGLIGIBLE * at_zero, NOTHING)
    return bool(small and np.isfinite(gap))


def closeness(x: float) -> str:
    """A relative gap in percent if it is 1e-3 or more, else as a number of two digits, rounded up."""
    if not 0.0 < x < 1e-3:
        return percent(x)
    exact = Decimal(x)
    return f"a relative {float(exact.quantize(Decimal(1).scaleb(exact.adjusted() - 1), ROUND_CEILING)):.2g}"


def percent(x: float) -> str:
    """An upper bound in percent, rounded up to two digits (or to an integer)."""
    if not 0.0 < x < 1e20:
        return f"{100 * x:g} %" if x <= 0.0 or np.isinf(x) else f"{101 * x:.2g} %"
    exact = Decimal(x) * 100
    digits = Decimal(1).scaleb(min(exact.adjusted() - 1, 0))
    return f"{float(exact.quantize(digits, ROUND_CEILING)):g} %"


def rounded_up(x: float, digits: int) -> str:
    """An upper bound, rounded up, in the shorter of two notations."""
    if x == 0.0 or not np.isfinite(x):
        return f"{x:g}"
    exact = Decimal(x)
    above = exact.quantize(Decimal(1).scaleb(exact.adjusted() - digits + 1), ROUND_CEILING)
    return min(f"{float(above):.{digits}g}", f"{float(above):.{digits - 1}e}", key=len)


def rounded_down(x: float, digits: int = 10) -> str:
    """A lower bound, rounded down."""
    if x == 0.0 or not np.isfinite(x):
        return f"{x:g}"
    exact = Decimal(x)
    return f"{float(exact.quantize(Decimal(1).scaleb(exact.adjusted() - digits + 1), ROUND_FLOOR)):.{digits}g}"


def _out(value: Any) -> Any:
    return str(value) if isinstance(value, float) and not np.isfinite(value) else value
