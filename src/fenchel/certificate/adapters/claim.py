"""The claim of a model: that its weights minimise a problem, or several independent ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from fenchel.certificate.certificate import Certificate
from fenchel.certificate.certify import certify_weights
from fenchel.data.products import UNIT_ROUNDOFF
from fenchel.data.typing import Vector
from fenchel.problem import Statement


class Claim(Protocol):
    """A problem with the model's weights; `scale` is its factor in the sum of the model's objectives."""

    @property
    def scale(self) -> float: ...

    def certify(self, effort: str, tol: float | None) -> Certificate: ...


@dataclass(frozen=True, eq=False)
class LinearClaim:
    """w and b minimise a problem; alpha are the model's own multipliers, if any.

    With `evidence` False the certificate has only its numbers: the scores of this problem alone give no labels.
    """

    problem: Statement
    w: Vector
    b: float | Vector = 0.0
    alpha: Vector | None = None
    scale: float = 1.0
    evidence: bool = True

    def certify(self, effort: str, tol: float | None) -> Certificate:
        found = certify_weights(self.problem, self.w, self.b, self.alpha, effort, tol)
        return found if self.evidence else replace(found, evidence=None)


def certify_claims(claims: Sequence[Claim], effort: str, tol: float | None) -> Certificate:
    """The certificate of one claim, or of the sum of several: sum_k scale_k P_k."""
    parts = [claim.certify(effort, tol) for claim in claims]
    if len(parts) == 1:
        return parts[0]
    return type(parts[0]).combined([_scaled(part, claim.scale) for part, claim in zip(parts, claims, strict=True)])


def _scaled(part: Certificate, scale: float) -> Certificate:
    """The certificate of scale P; the gap includes the rounding of the products."""
    up = 1.0 + 4.0 * UNIT_ROUNDOFF
    return replace(
        part,
        primal=scale * part.primal,
        dual=scale * part.dual,
        gap=scale * part.gap * up,
        rounding=scale * part.rounding * up,
        at_zero=scale * part.at_zero,
    )
