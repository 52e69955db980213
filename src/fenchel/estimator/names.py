"""Losses and penalties by name."""

from __future__ import annotations

import dataclasses
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


def _required(kind: type) -> list[str]:
    """The parameters without a default, except lam."""
    missing = dataclasses.MISSING
    fields = dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ()
    return [f.name for f in fields if f.name != "lam" and f.default is missing and f.default_factory is missing]


LOSSES = _by_name(losses, Loss)
REGRESSION_LOSSES = {name: kind for name, kind in LOSSES.items() if not kind().is_classification}
_ALL_PENALTIES = _by_name(penalties, Penalty)
#: Penalties without further required parameters than lam.
PENALTIES = {name: kind for name, kind in _ALL_PENALTIES.items() if not _required(kind)}


def resolve_loss(loss: object, offered: dict[str, type] = LOSSES) -> Loss:
    """A loss from its name (with default parameters), or the object itself."""
    if isinstance(loss, str) and loss in LOSSES:
        built: Loss = LOSSES[loss]()
        return built
    if not isinstance(loss, Loss):
        raise ValueError(f"loss must be a fenchel loss or one of {', '.join(map(repr, offered))}; got {loss!r}")
    return loss


def resolve_regression_loss(loss: object, instead: str = "LinearClassifier") -> Loss:
    """The same, for a regression loss; `instead` is the estimator for others."""
    found = resolve_loss(loss, REGRESSION_LOSSES)
    if found.is_classification:
        raise ValueError(f"{found!r} is a classification loss; use {instead}")
    return found


def resolve_penalty(penalty: object, lam: float | None, total_weight: float) -> Penalty:
    """A penalty from its name and lam (default 1 / W, that is C = 1), or the object itself."""
    if isinstance(penalty, str) and penalty in PENALTIES:
        kind = PENALTIES[penalty]
        has_lam = any(f.name == "lam" for f in dataclasses.fields(kind))
        if lam is not None and not has_lam:
            raise ValueError(f"lam={lam!r} would have no effect: penalty={penalty!r} has none; leave lam out")
        built: Penalty = kind(1.0 / total_weight if lam is None else lam) if has_lam else kind()
        return built
    if isinstance(penalty, str) and penalty in _ALL_PENALTIES:
        kind = _ALL_PENALTIES[penalty]
        needs = ", ".join(_required(kind))
        raise ValueError(
            f"penalty={penalty!r} needs {needs}: pass an object, "
            f"penalty=fenchel.penalties.{kind.__name__}(lam, {needs})"
        )
    if not isinstance(penalty, Penalty):
        raise ValueError(
            f"penalty must be a fenchel penalty or one of {', '.join(map(repr, PENALTIES))}; got {penalty!r}"
        )
    if lam is not None:
        raise ValueError(f"lam={lam!r} would have no effect: {penalty!r} has its own; use set_params(penalty__lam=...)")
    return penalty
