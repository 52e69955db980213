"""The compiled module, as the files in bind/ define it.

`_x86_64_v3` is the same module for wider vectors.
"""

from typing import overload

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Indices = NDArray[np.int64]
Array = NDArray[np.float64] | NDArray[np.float32] | NDArray[np.int32] | NDArray[np.int64]

class Lines:
    @overload
    def __init__(self, array: Array) -> None: ...
    @overload
    def __init__(self, indptr: Array, indices: Array, data: Array, width: int, checked: bool = False) -> None: ...
    @property
    def has_duplicates(self) -> bool: ...
    def gather(self, w: Vector, bound: bool, threads: int) -> tuple[Vector, Vector, int]: ...
    def scatter(self, a: Vector, bound: bool, threads: int) -> tuple[Vector, Vector, int]: ...
    def gather_some(self, which: Indices, w: Vector, threads: int) -> Vector: ...
    def scatter_some(self, which: Indices, a: Vector, p: Vector | None, threads: int) -> Vector: ...
    def gram_some(self, which: Indices, a: Vector) -> Vector: ...
    def energy_some(self, which: Indices, d: Vector) -> Vector: ...
    def squares_some(self, which: Indices, a: Vector) -> Vector: ...
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
        order: Indices,
        alpha: Vector,
        u: Vector,
        margin: float,
        held: Vector | None,
        threads: int,
        rounds: int,
    ) -> tuple[float, float, float, int, float, int]: ...
    def first_epoch(self, order: Indices, alpha: Vector, u: Vector) -> None: ...

def approx_weights(
    loss: Loss,
    columns: Lines,
    column: Indices,
    first: Indices,
    curvature: Vector,
    threshold: Vector,
    ridge: float,
    intercept: bool,
    y: Vector,
    p: Vector,
    order: Indices,
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
    order: Indices,
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
    order: Indices,
    t: int,
    v: Vector,
    held: Vector | None,
) -> int: ...
def extrapolate_samples(
    loss: Loss, now: Vector, before: Vector, factor: float, y: Vector, s: Vector
) -> tuple[Vector, Vector, float]: ...
def curvature_of_samples(loss: Loss, x: Vector, z: Vector, a: Vector, y: Vector, s: Vector) -> tuple[float, float]: ...
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
    indptr: Indices,
    indices: Indices,
    values: Vector,
    order: Indices,
    width: int,
    p: Vector,
    weight: Vector,
    q: Vector,
) -> Vector: ...
def total_variation_of_rows(y: Vector, rows: int, width: int, lam: float, threads: int) -> Vector: ...
def alternating_step(
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
def check_entries(x: Array, threads: int) -> tuple[int, float]: ...
def parse_svmlight(chunk: bytes, first_line: int) -> tuple[Vector, Indices, Indices, Vector]: ...

class BlockLoss:
    def dual_step(self, p: Vector, z: Vector, q: Vector, y: Indices) -> Vector: ...

class Multinomial(BlockLoss): ...
class CrammerSinger(BlockLoss): ...

def gather_blocks(lines: Lines, blocks: Vector, threads: int) -> tuple[Vector, int]: ...
def scatter_blocks(lines: Lines, blocks: Vector, threads: int) -> tuple[Vector, int]: ...
def ascend_blocks(
    loss: BlockLoss,
    rows: Lines,
    y: Indices,
    s: Vector,
    squared_norm: Vector,
    order: Indices,
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
    column: Indices,
    first: Indices,
    which: Indices,
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
    indptr: Array,
    indices: Array,
    data: Array,
) -> None: ...
def entries_across(lines: Lines) -> Indices: ...
def mirror_lower(H: Vector) -> None: ...

class Posv:
    def __init__(self, capsule: object) -> None: ...

class Syrk:
    def __init__(self, capsule: object) -> None: ...

def minimise_quadratic(
    posv: Posv,
    H: Vector,
    column: Indices,
    first: Indices,
    threshold: Vector,
    u: Vector,
    slope: Vector,
    passes: int,
    faces: int,
    steps: int,
    enough: float,
) -> None: ...

class Int16Screen:
    def lengths(self) -> Vector: ...

def int16_screen(lines: Lines, by_rows: bool, mean: Vector | None, p: Vector) -> Int16Screen: ...

class SparsePathTuning:
    """Described in sparse/sparse_path.hpp."""

    batch: int
    most_columns: int
    newton_steps: int
    first_cut: float
    least_cut: float
    most_cut: float
    least_strong: float
    next_ratio: float
    gap_fraction: float
    first_accuracy: float
    accuracy_factor: float
    least_accuracy: float
    progress: float
    most_stalls: int
    model_accuracy: float
    passes: int
    faces: int
    face_steps: int
    damping: float
    least_damping: float
    most_damping: float
    damping_factor: float
    halvings: int
    intercept_steps: int
    intercept_balance: float
    def __init__(self) -> None: ...

class SparsePath:
    @property
    def largest(self) -> float: ...
    def advance(
        self, threshold: Vector, ridge: Vector, tol: Vector, atol: float, seconds: float
    ) -> tuple[Indices, Indices, Vector, Vector, Indices, Vector, Vector, Vector, Vector, Vector, Indices]:
        """starts, columns, weights, largest, near_starts, near, cut, b, loss, multipliers, steps.

        Every column of model k that is not near has |v_j| <= cut[k], up to the rounding of a product in float64.
        """

def sparse_path(
    lines: Lines,
    by_rows: bool,
    mean: Vector | None,
    screen: Int16Screen,
    offset: float,
    loss: Loss,
    y: Vector,
    p: Vector,
    smoothness: float,
    intercept: bool,
    b: float,
    posv: Posv,
    syrk: Syrk,
    tuning: SparsePathTuning,
) -> SparsePath: ...
