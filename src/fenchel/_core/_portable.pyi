"""What the compiled module offers; the bind*.cpp files define it.

`_x86_64_v3` is the same module for wider vectors.
"""

from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

class Lines:
    @overload
    def __init__(self, array: NDArray[Any]) -> None: ...
    @overload
    def __init__(
        self, indptr: NDArray[Any], indices: NDArray[Any], data: NDArray[Any], width: int, checked: bool = False
    ) -> None: ...
    @property
    def has_duplicates(self) -> bool: ...
    def gather(self, w: Vector, bound: bool, threads: int) -> tuple[Vector, Vector, int]: ...
    def scatter(self, a: Vector, bound: bool, threads: int) -> tuple[Vector, Vector, int]: ...
    def gather_some(self, which: NDArray[np.int64], w: Vector, threads: int) -> Vector: ...
    def scatter_some(self, which: NDArray[np.int64], a: Vector, p: Vector | None, threads: int) -> Vector: ...
    def gram_some(self, which: NDArray[np.int64], a: Vector) -> Vector: ...
    def energy_some(self, which: NDArray[np.int64], d: Vector) -> Vector: ...
    def squares_some(self, which: NDArray[np.int64], a: Vector) -> Vector: ...
    def norms_along(self, p: float, s: Vector | None) -> Vector: ...
    def norms_across(self, p: float, s: Vector) -> Vector: ...

class Loss:
    def value(self, z: Vector, y: Vector) -> Vector: ...
    def derivative(self, z: Vector, y: Vector) -> Vector: ...
    def conjugate(self, u: Vector, y: Vector) -> Vector: ...
    def dual_step(self, a: Vector, z: Vector, q: Vector, y: Vector) -> Vector: ...
    def respond(
        self, z: Vector, y: Vector, s: Vector, c: Vector, tau: float
    ) -> tuple[Vector, Vector, float, float]: ...
    def slope_along(
        self, z: Vector, dz: Vector, y: Vector, s: Vector, c: Vector, tau: float, t: float
    ) -> tuple[float, float]: ...
    def gap_sum(self, z: Vector, y: Vector, s: Vector, a: Vector) -> float: ...
    def bound_values(
        self,
        z: Vector,
        absolute: Vector,
        relative: float,
        underflow: float,
        input: float,
        y: Vector,
        s: Vector,
        smoothness: float,
        lipschitz: float,
    ) -> tuple[float, float, Vector]: ...
    def bound_conjugates(
        self, a: Vector, at_zero: Vector, y: Vector, s: Vector, unit: float
    ) -> tuple[float, float]: ...

class Hinge(Loss): ...

class SmoothedHinge(Loss):
    def __init__(self, gamma: float) -> None: ...

class SquaredHinge(Loss): ...
class Logistic(Loss): ...
class Exponential(Loss): ...
class Squared(Loss): ...

class Pinball(Loss):
    def __init__(self, tau: float) -> None: ...

class EpsilonInsensitive(Loss):
    def __init__(self, epsilon: float) -> None: ...

class SquaredEpsilonInsensitive(Loss):
    def __init__(self, epsilon: float) -> None: ...

class Huber(Loss):
    def __init__(self, delta: float) -> None: ...

def runs_x86_64_v3() -> bool: ...

class Link: ...
class Linear(Link): ...

class Threshold(Link):
    def __init__(self, threshold: float) -> None: ...

class Power(Link):
    def __init__(self, p: float, radius: float) -> None: ...

class Ascent:
    def __init__(
        self,
        loss: Loss,
        link: Link,
        rows: Lines,
        y: Vector,
        s: Vector,
        q: Vector,
        step: float,
        shift: float,
        W: float,
    ) -> None: ...
    def epoch(
        self,
        order: NDArray[np.int64],
        alpha: Vector,
        u: Vector,
        margin: float,
        held: Vector | None,
        threads: int,
        rounds: int,
    ) -> tuple[float, float, float, int, float, int]: ...
    def first_epoch(self, order: NDArray[np.int64], alpha: Vector, u: Vector) -> None: ...

def approx_weights(
    loss: Loss,
    columns: Lines,
    column: NDArray[np.int64],
    first: NDArray[np.int64],
    curvature: Vector,
    threshold: Vector,
    ridge: float,
    intercept: bool,
    y: Vector,
    share: Vector,
    order: NDArray[np.int64],
    theta: float,
    accelerated: bool,
    images: Vector,
    z: Vector,
    u: Vector,
) -> tuple[float, float, float, float]: ...
def approx_samples(
    loss: Loss,
    link: Link,
    rows: Lines,
    y: Vector,
    s: Vector,
    q: Vector,
    scale: float,
    blocks: int,
    order: NDArray[np.int64],
    theta: float,
    accelerated: bool,
    images: Vector,
    z: Vector,
    u: Vector,
) -> tuple[float, float, float, float]: ...
def descend(
    loss: Loss,
    lines: Lines,
    y: Vector,
    s: Vector,
    squared_norm: Vector,
    lam: float,
    W: float,
    constant: float,
    radius: float,
    batch: int,
    order: NDArray[np.int64],
    t: int,
    v: Vector,
    held: Vector | None,
) -> int: ...
def extrapolate_samples(
    loss: Loss, now: Vector, before: Vector, factor: float, y: Vector, s: Vector
) -> tuple[Vector, Vector, float]: ...
def bend_of_samples(loss: Loss, x: Vector, z: Vector, a: Vector, y: Vector, s: Vector) -> tuple[float, float]: ...
def shrink_weights(
    now: Vector,
    before: Vector,
    factor: float,
    v: Vector,
    steps: Vector,
    t: float,
    threshold: Vector,
    ridge: float,
) -> tuple[Vector, float, float, bool]: ...
def total_variation(y: Vector, lam: float) -> Vector: ...
def taut_string(y: Vector, lam: float) -> tuple[Vector, Vector]: ...
def banded_least_squares(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int64],
    values: Vector,
    order: NDArray[np.int64],
    width: int,
    p: Vector,
    weight: Vector,
    q: Vector,
) -> Vector: ...
def total_variation_of_rows(y: Vector, rows: int, width: int, lam: float, threads: int) -> Vector: ...
def take_turn(
    y: Vector,
    b: Vector,
    before: Vector,
    beta: float,
    rows: int,
    width: int,
    across: float,
    down: float,
    threads: int,
) -> tuple[Vector, Vector, Vector, tuple[float, float, float, float, float]]: ...
def sum_of_squares(x: Vector) -> float: ...
def bound_products(a: Vector, z: Vector, error: Vector, s: Vector) -> tuple[float, float, float]: ...
def look_at_entries(x: NDArray[Any], threads: int) -> tuple[int, float]: ...
def parse_svmlight(chunk: bytes, first_line: int) -> tuple[Vector, NDArray[np.int64], NDArray[np.int64], Vector]: ...

class BlockLoss:
    def dual_step(self, p: Vector, z: Vector, q: Vector, y: NDArray[np.int64]) -> Vector: ...

class Multinomial(BlockLoss): ...
class CrammerSinger(BlockLoss): ...

def gather_blocks(lines: Lines, blocks: Vector, threads: int) -> tuple[Vector, int]: ...
def scatter_blocks(lines: Lines, blocks: Vector, threads: int) -> tuple[Vector, int]: ...
def ascend_blocks(
    loss: BlockLoss,
    rows: Lines,
    y: NDArray[np.int64],
    s: Vector,
    squared_norm: Vector,
    order: NDArray[np.int64],
    alpha: Vector,
    u: Vector,
    mu: float,
    threshold: float,
    inverse_rho: float,
    W: float,
    margin: float,
    threads: int,
    rounds: int,
) -> tuple[float, float, float, int, int]: ...
def descend_columns(
    columns: Lines,
    column: NDArray[np.int64],
    first: NDArray[np.int64],
    which: NDArray[np.int64],
    c: Vector,
    curvature: Vector,
    threshold: Vector,
    ridge: float,
    intercept: bool,
    w: Vector,
    b: float,
    m: Vector,
    passes: float,
    enough: float,
) -> tuple[float, float]: ...
def take(
    lines: Lines,
    place: NDArray[np.int32],
    across: bool,
    indptr: NDArray[Any],
    indices: NDArray[Any],
    data: NDArray[Any],
) -> None: ...
def entries_across(lines: Lines) -> NDArray[np.int64]: ...
def mirror_lower(H: Vector) -> None: ...
def squares_along(lines: Lines, which: NDArray[np.int64], a: Vector) -> Vector: ...
def minimise_quadratic(
    posv: Any,
    H: Vector,
    column: NDArray[np.int64],
    first: NDArray[np.int64],
    threshold: Vector,
    u: Vector,
    slope: Vector,
    passes: int,
    faces: int,
    steps: int,
    enough: float,
) -> None: ...

class ShortColumns:
    def lengths(self) -> Vector: ...

def short_columns(lines: Lines, by_rows: bool, mean: Vector | None, shares: Vector) -> ShortColumns: ...

class WidePath:
    @property
    def largest(self) -> float: ...
    def advance(
        self, threshold: Vector, ridge: Vector, tol: Vector, atol: float, seconds: float
    ) -> tuple[Any, Any, Vector, Vector, Any, Vector, Vector, Vector, Vector, Any]: ...

def wide_path(
    lines: Lines,
    by_rows: bool,
    mean: Vector | None,
    shorts: ShortColumns,
    apart: float,
    loss: Loss,
    y: Vector,
    p: Vector,
    smoothness: float,
    intercept: bool,
    b: float,
    posv: Any,
    syrk: Any,
) -> WidePath: ...
