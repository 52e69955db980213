"""Checks of parameters."""

from __future__ import annotations

import numpy as np

from fenchel.problem.penalties import Penalty
from fenchel.problem.penalties.base import NormPenalty


def shown(value: object) -> str:
    """A value in a message: 0.1, not np.float64(0.1)."""
    return repr(value.item() if isinstance(value, np.generic) else value)


def require_instance(value: object, kind: type, name: str, example: str) -> None:
    """Raise unless value is an instance of `kind`."""
    if not isinstance(value, kind):
        hint = " (an instance, not the class)" if isinstance(value, type) else ""
        raise TypeError(f"{name} must be a {kind.__name__}, such as {example}{hint}; got {value!r}")


def require_double(term: object) -> None:
    """Raise if a parameter is a float32: NumPy would compute in single precision, where no bound holds."""
    for name, value in vars(term).items():
        if isinstance(value, np.floating) and value.dtype.itemsize < 8:
            raise TypeError(f"{type(term).__name__}.{name} is a {value.dtype}; pass float({name})")


def require_flag(value: object, name: str) -> None:
    """Raise unless value is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {shown(value)}")


def require_count(value: object, name: str, of: str) -> None:
    """Raise unless value is an integer >= 1 (not a bool)."""
    if isinstance(value, bool | np.bool_) or not (isinstance(value, int | np.integer) and value >= 1):
        raise ValueError(f"{name} must be a whole number of {of}, at least 1; got {shown(value)}")


def require_one_of(value: object, known: tuple[str, ...], name: str) -> None:
    """Raise unless value is one of the known strings."""
    if not (isinstance(value, str) and value in known):
        raise ValueError(f"{name} must be one of {', '.join(map(repr, known))}; got {value!r}")


def require_bounded_dual(penalty: Penalty) -> None:
    """Raise unless the penalty is zero, strongly convex, a norm, or has bounded level sets: D is bounded for these."""
    bounded = penalty.is_zero or penalty.strong_convexity > 0 or isinstance(penalty, NormPenalty)
    if not (bounded or penalty.level_radius(1.0) < np.inf):
        raise TypeError(
            f"{penalty!r} is neither strongly convex nor a norm (a NormPenalty), and has no level_radius: "
            "one of these is needed to bound the dual"
        )


def require_norm_or_curvature(penalty: Penalty) -> None:
    """Raise unless the penalty is 0, strongly convex or a norm: the bounds for several scores are proven for these."""
    if not (penalty.is_zero or penalty.strong_convexity > 0 or isinstance(penalty, NormPenalty)):
        raise TypeError(f"{penalty!r} must be strongly convex or a norm (a NormPenalty) for several scores per sample")
