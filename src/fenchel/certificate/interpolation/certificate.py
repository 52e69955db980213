"""The certificate of an interpolation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fenchel.certificate.certificate import NEGLIGIBLE, NOTHING, Certificate, closeness, rounded_down


@dataclass(frozen=True, repr=False)
class InterpolationCertificate(Certificate):
    """What is proven of a model under hard constraints.

    `dual` minus `rounding` bounds the penalty of every feasible model from below. `gap` is finite only if a feasible
    model is known, here or nearby. `primal` is the penalty of the model, which may violate constraints.

    Attributes
    ----------
    violation : float
        No score is farther from its set than this.
    feasible : str
        "exact": the model satisfies every constraint, in exact arithmetic; "nearby": a model within `distance` does;
        "": no feasible model is known; "contradiction": there is none. Then `primal` is the root of the weighted mean
        squared distance of the scores to their sets, and `dual` a bound below that of every model.
    distance : float
        How far the weights are from a feasible model, at most, in the 2-norm.
    """

    violation: float = np.inf
    feasible: str = ""
    distance: float = np.inf

    @classmethod
    def combined(cls, parts: Sequence[Certificate]) -> Certificate:
        """One certificate for the sum of several penalties: feasible if every part is."""
        made = Certificate.combined(parts)
        own = [part for part in parts if isinstance(part, cls)]
        order = ["contradiction", "", "nearby", "exact"]
        worst = min((part.feasible for part in own), key=order.index)
        longest = float(np.sqrt(sum(part.distance**2 for part in own)))
        return cls(**vars(made) | {"violation": max(x.violation for x in own), "feasible": worst, "distance": longest})

    @property
    def vanishes(self) -> bool:
        """Whether the penalty is zero beside its scale: an intercept alone satisfies all constraints, say."""
        return self.feasible not in ("", "contradiction") and is_nothing(self.primal, self.gap, self.at_zero)

    @property
    def proven(self) -> str:
        closest = closeness(self.relative_gap)
        if self.feasible == "contradiction":
            return f"the constraints contradict each other, and no model lowers the violation by more than {closest}"
        if self.feasible and self.vanishes:
            return "the penalty is zero up to rounding"
        if self.feasible and np.isfinite(self.gap):
            return f"no feasible model lowers the penalty by more than {closest}"
        least = (self.dual - self.rounding) * (1.0 - 1e-15 * np.sign(self.dual))
        lower = f"no feasible model has a penalty below {rounded_down(least)}" if np.isfinite(least) else "no bound"
        return f"the constraints are met within {self.violation:.3g}, {lower}, and no feasible model is known"

    def __str__(self) -> str:
        if self.feasible == "contradiction" and self.parts:  # penalties and violations do not add up
            count = sum(isinstance(part, type(self)) and part.feasible == "contradiction" for part in self.parts)
            return f"The constraints of {count} of {len(self.parts)} problems contradict each other; see the parts."
        if self.feasible == "contradiction":
            return self._contradiction()
        verdict = "Certified" if self.ok else "Not certified to tolerance" if np.isfinite(self.gap) else "Not certified"
        first = f"{verdict}: {self.proven} (tol {self.tol:g})."
        if not np.isfinite(self.gap):
            return f"{first}\npenalty {self.primal:.10g} (dual point: {self.how})."
        where = {
            "exact": "Every constraint is satisfied exactly.",
            "nearby": f"No score is farther than {self.violation:.2g} from its set; a model within {self.distance:.2g} "
            "satisfies every constraint exactly.",
        }[self.feasible]
        lines = [
            first,
            f"penalty {self.primal:.10g}; no feasible model has less than {rounded_down(self.primal - self.gap)}; "
            f"gap {self.gap:.3g} (rounding {self.rounding:.1g}; dual point: {self.how}).",
            where,
        ]
        if np.isfinite(self.weights_radius):
            lines.append(f"The exact solution's weights lie within {self.weights_radius:.3g} of these.")
        return "\n".join(lines)

    def _contradiction(self) -> str:
        return (
            f"The constraints contradict each other: {'certified' if self.ok else 'not certified to tolerance'} that "
            f"no model lowers the violation by more than {closeness(self.relative_gap)} (tol {self.tol:g}).\n"
            f"root mean square violation {self.primal:.10g}; no model has less than "
            f"{rounded_down(self.primal - self.gap)}; largest violation {self.violation:.3g}."
        )


def is_nothing(primal: float, gap: float, at_zero: float) -> bool:
    """Whether a penalty and its gap are negligible beside the scale of penalties, or smaller than any number."""
    return bool(max(abs(primal), gap) <= max(NEGLIGIBLE * at_zero, NOTHING))
