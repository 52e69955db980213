"""Which lam of a family a stream takes, by progressive validation, and why."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from fenchel.data.typing import Vector


@dataclass(frozen=True, eq=False)
class Recent:
    """Errors and losses of several lams over the same samples, by progressive validation; means over the classes.

    Parameters
    ----------
    errors, losses : array
        Weighted means for each lam; for a regression both are the losses.
    weight, squares : float
        Of the samples: sum s_i and sum s_i^2, which is needed for more than one lam.
    has_labels : bool
        Whether errors are fractions of wrong signs.
    """

    errors: Vector
    losses: Vector
    weight: float
    squares: float
    has_labels: bool

    @property
    def deviation(self) -> float:
        """The standard deviation of the least error, sqrt(e (1 - e) sum_i s_i^2) / sum_i s_i; 0 for a regression."""
        if not self.has_labels:
            return 0.0
        least = float(self.errors.min())
        return float(np.sqrt(max(least * (1.0 - least), 0.0) * self.squares)) / self.weight

    def best(self) -> int:
        """The position of the least loss, of those with an error within one standard deviation of the least error.

        A loss that is not finite is never the least, unless all are.
        """
        losses = self.losses
        if not np.isfinite(losses).all():
            losses = np.where(np.isfinite(losses), losses, np.inf)
        if self.has_labels and len(losses) > 1:
            losses = np.where(self.errors <= self.errors.min() + self.deviation, losses, np.inf)
        return int(losses.argmin())


@dataclass(frozen=True)
class LamChoice:
    """The lam that was taken of those tried.

    Of the lams that learnt to the end, those count whose recent error is within one standard deviation of the least
    one; of these the one with the least recent loss is taken. A regression has no errors: the least recent loss.

    Attributes
    ----------
    lam : float
        The one that was taken.
    losses : dict
        The recent loss for each lam that was tried: of every fourth sample of the last half of the stream or more, by
        the mean of the iterates before the sample was learnt; the mean over the classes. Of those that stopped to
        learn, when they did.
    errors : dict
        Likewise the fraction of wrong signs; empty for a regression.
    deviation : float
        The standard deviation of the least of these errors.
    dropped : dict
        After how many samples a lam was found to be clearly worse than the best one, and stopped to learn.
    """

    lam: float
    losses: dict[float, float]
    errors: dict[float, float] = field(default_factory=dict)
    deviation: float = 0.0
    dropped: dict[float, int] = field(default_factory=dict)

    def __str__(self) -> str:
        if len(self.losses) == 1:
            return f"lam {self.lam:.3g} is the only one that was tried."
        lines = [self._reason(), f"Recent {'errors and losses' if self.errors else 'losses'}: {self._tried()}."]
        for count in sorted(set(self.dropped.values())):
            lams = ", ".join(f"{lam:.2g}" for lam, at in self.dropped.items() if at == count)
            lines.append(f"After {count} samples lam {lams} was clearly worse than another, and learnt no more.")
        return "\n".join(lines)

    def _reason(self) -> str:
        loss = f"lam {self.lam:.3g} was chosen for its recent loss of {self.losses[self.lam]:.4g}, the least of "
        if not self.errors:
            return f"{loss}those that learnt to the end."
        errors = {lam: error for lam, error in self.errors.items() if lam not in self.dropped}
        best = min(errors, key=errors.__getitem__)
        return (
            f"{loss}those with a recent error of at most {errors[best] + self.deviation:.4g}: the least, "
            f"{errors[best]:.4g} of lam {best:.3g}, plus one standard deviation."
        )

    def _tried(self) -> str:
        return "; ".join(
            f"lam {lam:.2g}: " + (f"{self.errors[lam]:.4g}, " if self.errors else "") + f"{loss:.4g}"
            for lam, loss in self.losses.items()
        )
