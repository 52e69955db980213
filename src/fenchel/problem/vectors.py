"""Small functions of vectors and numbers that losses and penalties share."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fenchel.data.design import Vector

Mask = NDArray[np.bool_]


def soft(x: Vector, t: Vector | float) -> Vector:
    """sign(x) max(0, |x| - t)."""
    return x - np.clip(x, -t, t)


def inside(ok: Mask, values: Vector) -> Vector:
    """`values` where `ok`, infinity elsewhere."""
    return np.where(ok, values, np.inf)


def dual_exponent(p: float) -> float:
    """q with 1/p + 1/q = 1."""
    return np.inf if p == 1 else (1.0 if np.isinf(p) else p / (p - 1.0))


def square(x: float) -> float:
    """x^2, infinite where it overflows (Python's ** would raise)."""
    return x * x


def p_norm(x: Vector, p: float) -> float:
    """|x|_p, scaled by the largest entry so that nothing overflows on the way."""
    largest = float(np.max(np.abs(x), initial=0.0))
    if largest == 0.0 or not np.isfinite(largest) or np.isinf(p):
        return largest
    with np.errstate(under="ignore"):
        ratio = np.abs(x) / largest
        total = float(np.sum(ratio * ratio if p == 2 else ratio if p == 1 else ratio**p))
        return largest * float(np.sqrt(total) if p == 2 else total ** (1.0 / p))


def require_positive(value: object, name: str, owner: object) -> None:
    """Raise unless a parameter is a positive finite number."""
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not (number and 0.0 < float(value) < np.inf):  # type: ignore[arg-type]
        raise ValueError(f"{type(owner).__name__}: {name} must be a positive finite number, got {value!r}")


def require_nonnegative(value: object, name: str, owner: object) -> None:
    """Raise unless a parameter is a finite number >= 0."""
    if value != 0:
        require_positive(value, name, owner)
