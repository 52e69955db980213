"""Functions of vectors and numbers for losses and penalties."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np
from scipy.optimize import brentq

from fenchel._core import kernels
from fenchel.data.typing import Array, Mask, Vector

Values = TypeVar("Values", bound=Array)


def frozen(values: Values) -> Values:
    """A read-only copy: certificates refer to it."""
    copy = values.copy()
    copy.flags.writeable = False
    return copy


def sum_of_squares(x: Vector) -> float:
    """|x|_2^2 without a temporary and without BLAS threads, which would spin on a core that the next step needs."""
    return kernels.sum_of_squares(np.ascontiguousarray(x, dtype=np.float64).ravel())


def soft(x: Vector, t: Vector | float) -> Vector:
    """sign(x) max(0, |x| - t)."""
    return x - np.clip(x, -t, t)


def is_finite(values: Vector) -> bool:
    """Whether all entries are finite; a finite sum of squares proves it quickly."""
    return bool(np.isfinite(sum_of_squares(values)) or np.all(np.isfinite(values)))


def finite(values: Vector) -> Vector:
    """values with nan as 0 and infinities as the largest number."""
    return values if is_finite(values) else np.nan_to_num(values)


def inside(ok: Mask, values: Vector) -> Vector:
    """`values` where `ok`, infinity elsewhere."""
    return np.where(ok, values, np.inf)


def dual_exponent(p: float) -> float:
    """q with 1/p + 1/q = 1."""
    return np.inf if p == 1 else (1.0 if np.isinf(p) else p / (p - 1.0))


def times_square(factor: float, x: float) -> float:
    """factor x^2, where x^2 alone might underflow or overflow."""
    return factor * x * x


def square_over(x: float, divisor: float) -> float:
    """x^2 / divisor, where x^2 alone might underflow or overflow."""
    return x * (x / divisor)


def p_norm(x: Vector, p: float) -> float:
    """|x|_p, scaled by the largest entry where squares or powers might overflow or underflow."""
    if p == 2:
        total = sum_of_squares(x)
        if 1e-280 < total < 1e280:
            return float(np.sqrt(total))
    largest = float(np.max(np.abs(x), initial=0.0))
    if largest == 0.0 or not np.isfinite(largest) or np.isinf(p):
        return largest
    with np.errstate(under="ignore"):
        ratio = np.abs(x) / largest
        total = float(np.sum(ratio * ratio if p == 2 else ratio if p == 1 else ratio**p))
        return largest * float(np.sqrt(total) if p == 2 else total ** (1.0 / p))


def row_lengths(Z: Vector) -> Vector:
    """|z_i|_2 of every row, scaled by its largest entry, so that squares neither overflow nor underflow."""
    if Z.shape[-1] == 1:
        return np.abs(Z[..., 0])
    largest = np.max(np.abs(Z), axis=-1, initial=0.0)
    with np.errstate(under="ignore"):
        ratio = Z / np.where((largest > 0.0) & np.isfinite(largest), largest, 1.0)[..., None]
        return np.asarray(np.where(largest > 0.0, largest * np.sqrt(np.sum(ratio * ratio, axis=-1)), 0.0))


def set_number(owner: object, name: str) -> float:
    """Make a parameter of a frozen object a Python float, or raise; a float32 would make NumPy compute in float32."""
    value = getattr(owner, name)
    if type(value) is float:
        return value
    try:
        if isinstance(value, bool | str | bytes) or np.ndim(value) != 0:
            raise TypeError
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{type(owner).__name__}: {name} must be a number, got {value!r}") from None
    object.__setattr__(owner, name, number)
    return number


def set_positive(owner: object, name: str) -> None:
    """Make a parameter a positive finite float, or raise."""
    value = set_number(owner, name)
    if not 0.0 < value < np.inf:
        raise ValueError(f"{type(owner).__name__}: {name} must be a positive finite number, got {value!r}")


def set_nonnegative(owner: object, name: str) -> None:
    """Make a parameter a finite float >= 0, or raise."""
    value = set_number(owner, name)
    if not 0.0 <= value < np.inf:
        raise ValueError(f"{type(owner).__name__}: {name} must be a finite number >= 0, got {value!r}")


def bracketed_root(f: Callable[[float], float], low: float, high: float) -> float:
    """A root of f between low and high; without a change of sign (rounding), the end with the smaller |f|."""
    at_low, at_high = f(low), f(high)
    if not at_low * at_high < 0.0:
        return high if abs(at_high) < abs(at_low) or not np.isfinite(at_low) else low
    return float(brentq(f, low, high, xtol=1e-300, rtol=1e-14, maxiter=500, disp=False))
