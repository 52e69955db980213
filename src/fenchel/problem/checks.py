"""Checks of parameters that all statements of problems share."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np

from fenchel.problem.penalties import Penalty
from fenchel.problem.penalties.base import NormPenalty

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Kind = TypeVar("Kind", bound="DataclassInstance")


def require_instance(value: object, kind: type, name: str, example: str) -> None:
    """Raise unless value is a `kind`, with a hint where it is the class itself."""
    if not isinstance(value, kind):
        hint = " (an instance, not the class)" if isinstance(value, type) else ""
        raise TypeError(f"{name} must be a {kind.__name__}, such as {example}{hint}; got {value!r}")


def require_double(term: object) -> None:
    """Parameters of a user's own classes: NumPy computes with a float32 in single precision, where no bound holds."""
    for name, value in vars(term).items():
        if isinstance(value, np.floating) and value.dtype.itemsize < 8:
            raise TypeError(f"{type(term).__name__}.{name} is a {value.dtype}; pass float({name})")


def require_flag(value: object, name: str) -> None:
    """Raise unless value is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {value!r}")


def require_count(value: object, name: str, of: str) -> None:
    """Raise unless value is a whole number, at least 1; True is none."""
    if isinstance(value, bool | np.bool_) or not (isinstance(value, int | np.integer) and value >= 1):
        raise ValueError(f"{name} must be a whole number of {of}, at least 1; got {value!r}")


def require_one_of(value: object, known: tuple[str, ...], name: str) -> None:
    """Raise unless value is one of these words."""
    if not (isinstance(value, str) and value in known):
        raise ValueError(f"{name} must be one of {', '.join(map(repr, known))}; got {value!r}")


def require_bounded_dual(penalty: Penalty) -> None:
    """Raise unless D has a bound."""
    if not (penalty.strong_convexity > 0 or isinstance(penalty, NormPenalty)):
        raise TypeError(
            f"{penalty!r} must be strongly convex or a norm (a NormPenalty): without either, D has no bound"
        )


def replaced(statement: Kind, changes: dict[str, object]) -> Kind:
    """The same statement with some fields replaced; nothing is checked or copied again."""
    other, known = object.__new__(type(statement)), vars(statement)
    if unknown := changes.keys() - statement.__dataclass_fields__.keys():
        raise TypeError(f"{type(statement).__name__} has no {', '.join(unknown)}")
    changes = {name: value for name, value in changes.items() if value is not known[name]}
    if changes.keys() <= {"penalty"}:  # what was computed from the data stays as it is
        vars(other).update(known, **changes)
    else:
        vars(other).update({name: known[name] for name in statement.__dataclass_fields__}, **changes)
    return other
