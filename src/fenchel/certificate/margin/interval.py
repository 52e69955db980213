"""What is proven of the margin of a classifier, and of all others."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from html import escape
from numbers import Integral
from typing import Any

import numpy as np

from fenchel.certificate.certificate import CertificateError, closeness, rounded_down
from fenchel.certificate.interpolation.infeasible import FarkasCertificate
from fenchel.data.typing import Indices, Vector

FORMAT = "fenchel-margin-1"
#: Margins that are closer to the best one are described by the difference.
NEAR = 0.01


class InseparableWarning(UserWarning):
    """No linear classifier separates the samples, or none was found."""


@dataclass(frozen=True)
class MarginInterval:
    """The margin of a classifier, and the largest one that any of its kind has: bounds in exact arithmetic.

    Attributes
    ----------
    lower : float
        The classifier's margin is at least this: min_i y_i (x_i.w + b) / |w|_p, or for several classes the least
        difference of the scores of the right class and another one, divided by the p-norm of all weights.
    upper : float
        No linear classifier, or function of the kernel, has a margin above this.
    best : float
        Some classifier, `model`, has at least this margin; 0 if none is known that separates the samples.
    p : float
        The norm of the weights.
    misclassified : int
        Samples that this classifier does not put on the right side.
    samples, classes : int
    intercept : bool
        Whether the classifiers have intercepts, which are not part of the norm.
    how : str
        Where the multipliers of `upper` come from.
    tol : float
        The tolerance that was asked for.
    model : tuple (w, b), optional
        The classifier with the margin `best`.
    multipliers : array, optional
        q >= 0 of `upper`: |sum_i q_i y_i x_i| / sum_i q_i in the dual norm; n x (classes - 1) for several classes.
    support : array of integers, optional
        The samples that may determine the maximum-margin classifier: it stays what it is if any others are removed,
        or move without getting closer to it. None where nothing is proven (p = 1, p > 2, no separation).
    contradiction : FarkasCertificate, optional
        A proof that none separates the samples.
    kind : str
        "linear classifier" or "function of the kernel".
    """

    lower: float
    upper: float
    best: float
    p: float
    misclassified: int
    samples: int
    classes: int
    intercept: bool
    how: str
    tol: float
    model: tuple[Vector, Vector] | None = field(default=None, repr=False, compare=False)
    multipliers: Vector | None = field(default=None, repr=False, compare=False)
    support: Indices | None = field(default=None, repr=False, compare=False)
    contradiction: FarkasCertificate | None = field(default=None, repr=False, compare=False)
    kind: str = "linear classifier"

    def __post_init__(self) -> None:
        """The ends may be infinite, and the lower one negative; no end is NaN, and bounds do not contradict."""
        if not (self.lower <= self.upper and 0.0 <= self.best <= self.upper):
            raise CertificateError(
                f"a margin of at least {self.lower}, and one of at least {self.best}, exceed {self.upper}, "
                "which none does"
            )
        if not (self.p >= 1.0 and self.tol > 0.0):
            raise ValueError(f"p must be at least 1 and tol positive; got {self.p!r} and {self.tol!r}")
        for name, least in (("misclassified", 0), ("samples", 1), ("classes", 2)):
            count = getattr(self, name)
            if isinstance(count, bool) or not isinstance(count, Integral):
                raise TypeError(f"{name} must be an integer, got {count!r}")
            if count < least:
                raise ValueError(f"{name} must be at least {least}, got {count}")
        if self.misclassified > self.samples:
            raise ValueError(f"{self.misclassified} of {self.samples} samples cannot be misclassified")
        if not (isinstance(self.intercept, bool) and isinstance(self.how, str) and isinstance(self.kind, str)):
            raise TypeError(
                f"intercept must be a bool, how and kind texts; got {self.intercept!r}, {self.how!r} and {self.kind!r}"
            )

    @property
    def ok(self) -> bool:
        """Whether the margin is proven to be the best one, to the tolerance."""
        return self.lower > 0.0 and self.upper < np.inf and self.upper - self.lower <= self.tol * self.upper

    @property
    def separable(self) -> bool | None:
        """Whether some linear classifier separates the samples; None if neither is proven."""
        if self.best > 0.0:
            return True
        return False if self.contradiction is not None or self.upper == 0.0 else None

    @property
    def share(self) -> float:
        """The margin beside the best possible one, at least; at most 1."""
        return self.lower / self.upper if self.upper > 0.0 else 0.0

    def __str__(self) -> str:
        return "\n".join([self._first, *self._others])

    @property
    def _first(self) -> str:
        norm = f"p = {self.p:g}"
        if self.lower > 0.0:
            return (
                f"The margin is at least {rounded_down(self.lower, 6)} ({norm}); no {self.kind} exceeds "
                f"{_rounded_up(self.upper)}."
            )
        if not self.misclassified:
            return f"No sample is misclassified as computed, but no positive margin is proven ({norm})."
        verb = "is" if self.misclassified == 1 else "are"
        return (
            f"{self.misclassified} of {self.samples} samples {verb} misclassified: the margin is not positive, "
            f"and at least {rounded_down(self.lower, 6)} ({norm})."
        )

    @property
    def _others(self) -> list[str]:
        if self.contradiction is not None:
            return [f"Proven: no {self.kind} separates these samples. " + _combination(self.contradiction)]
        lines = []
        if self.lower > 0.0:
            more = (self.upper - self.lower) / self.lower * (1.0 + 1e-12)
            near = f"None has a margin that is larger by more than {closeness(more)}."
            part = f"It has at least {rounded_down(100.0 * self.share, 4)} % of the best margin."
            lines.append(near if more < NEAR else part)
        if self.best > max(self.lower, 0.0) and not self.ok:
            lines.append(f"Some classifier has a margin of at least {rounded_down(self.best, 6)}.")
        if self.best <= 0.0:
            lines.append(
                f"No {self.kind} exceeds {_rounded_up(self.upper)}; whether the samples can be separated is not known."
            )
        elif self.lower <= 0.0:
            lines.append(f"No {self.kind} exceeds {_rounded_up(self.upper)}.")
        if self.support is not None:
            lines.append(f"The best one depends on at most {len(self.support)} of the {self.samples} samples.")
        return lines

    def _repr_html_(self) -> str:
        colour = "#1a7f37" if self.ok else "#9a6700" if self.lower > 0.0 else "#cf222e"
        first, *rest = escape(str(self)).splitlines()
        body = "".join(f"<div style='color:#57606a'>{line}</div>" for line in rest)
        return f"<div style='border-left:4px solid {colour};padding:.3em .8em'><b>{first}</b>{body}</div>"

    def to_json(self) -> str:
        """The numbers as JSON, infinities as strings."""
        numbers = {f.name: getattr(self, f.name) for f in fields(self) if f.compare}
        shown = {k: str(v) if isinstance(v, float) and not np.isfinite(v) else v for k, v in numbers.items()}
        return json.dumps({"format": FORMAT, **shown, "separable": self.separable}, indent=2)

    @classmethod
    def from_json(cls, text: str) -> MarginInterval:
        """Read what `to_json` wrote; without weights, multipliers and proofs."""
        try:
            values: dict[str, Any] = json.loads(text)
            if values.pop("format") != FORMAT:
                raise KeyError("format")
            values.pop("separable")
            numbers: dict[str, Any] = values | {k: float(values[k]) for k in ("lower", "upper", "best", "p", "tol")}
            return cls(**numbers)
        except (KeyError, TypeError, ValueError, AttributeError, CertificateError) as error:
            raise ValueError(f"not a margin interval written by fenchel ({error})") from error


def _combination(proof: FarkasCertificate) -> str:
    used = int(np.count_nonzero(np.any(np.reshape(proof.multipliers, (len(proof.multipliers), -1)) != 0.0, axis=1)))
    return f"A combination of {used} of their constraints is contradictory ({proof.how})."


def _rounded_up(x: float) -> str:
    return rounded_down(-x, 6).lstrip("-") if x else "0"
