"""Losses and penalties by name, for people who would rather write a word than an object."""

from __future__ import annotations

import re
from types import ModuleType

from fenchel.problem import losses, penalties
from fenchel.problem.losses import Loss
from fenchel.problem.penalties import Penalty


def snake_case(name: str) -> str:
    """SquaredHinge -> squared_hinge, L1 -> l1."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _by_name(module: ModuleType, base: type) -> dict[str, type]:
    kinds = {snake_case(name): getattr(module, name) for name in module.__all__}
    return {name: kind for name, kind in sorted(kinds.items()) if issubclass(kind, base) and kind is not base}


LOSSES = _by_name(losses, Loss)
#: GroupL2 cannot be had by its name alone: it must be told the groups.
PENALTIES = {name: kind for name, kind in _by_name(penalties, Penalty).items() if name != "group_l2"}


def resolve_loss(loss: object) -> Loss:
    """A loss from its name (with default parameters), or the object itself."""
    if isinstance(loss, str) and loss in LOSSES:
        built: Loss = LOSSES[loss]()
        return built
    if not isinstance(loss, Loss):
        raise ValueError(f"loss must be a fenchel loss or one of {', '.join(map(repr, LOSSES))}; got {loss!r}")
    return loss


def resolve_regression_loss(loss: object) -> Loss:
    """The same, for a loss of numbers."""
    resolved = resolve_loss(loss)
    if resolved.is_classification:
        raise ValueError(f"{resolved!r} is a classification loss; use LinearClassifier")
    return resolved


def resolve_penalty(penalty: object, lam: float | None, total_weight: float) -> Penalty:
    """A penalty from its name and lam, or the object itself; lam = 1 / W by default, the C = 1 of the sum form."""
    if isinstance(penalty, str) and penalty in PENALTIES:
        built: Penalty = PENALTIES[penalty](1.0 / total_weight if lam is None else lam)
        return built
    if not isinstance(penalty, Penalty):
        raise ValueError(
            f"penalty must be a fenchel penalty or one of {', '.join(map(repr, PENALTIES))}; got {penalty!r}"
        )
    if lam is not None:
        raise ValueError(
            f"lam={lam!r} would have no effect: {penalty!r} brings its own; use set_params(penalty__lam=...)"
        )
    return penalty
