"""What an algorithm is: something that can be stepped."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import numpy as np

from fenchel.data.typing import Indices, Vector
from fenchel.problem import Problem, Trait
from fenchel.problem.penalties import Penalty
from fenchel.problem.vectors import dual_exponent, sum_of_squares

if TYPE_CHECKING:
    from fenchel.steps.measurements import Measurements

State = TypeVar("State")


class Overflow(ArithmeticError):
    """An iteration left the range of floating-point numbers; what it found before still counts."""


class GaveUp(Overflow):
    """An algorithm finds no better model, though numbers are in range; another one may."""


def length(x: Vector) -> float:
    """|x|_2 from above, for bounds on rounding: what underflows is made good, what overflows is infinite."""
    return float(np.sqrt(sum_of_squares(x))) * (1.0 + 1e-6) + 1e-150


@dataclass(frozen=True)
class Start:
    """Where an algorithm begins: weights, intercept, multipliers; of a multiclass problem k x d, k and n x k."""

    w: Vector
    b: Any
    alpha: Vector


@dataclass(frozen=True, eq=False)
class Model:
    """Weights on some columns, zero on all others; an intercept (k of each for several classes)."""

    weights: Vector
    b: float | Vector
    columns: Indices | None = None
    """The columns that the weights belong to, in any order; None if they are all of them."""
    width: int = 0
    """How many columns there are; only needed beside `columns`."""

    def dense(self) -> Vector:
        """All weights, a new array."""
        if self.columns is None:
            return self.weights.copy()
        w = np.zeros(self.width)
        w[self.columns] = self.weights
        return w

    def write(self, w: Vector) -> None:
        """Put the weights into an array of zeros."""
        w[slice(None) if self.columns is None else self.columns] = self.weights

    def nonzeros(self) -> tuple[Indices, Vector]:
        """Which weights are not zero, in any order, and what they are."""
        places = np.flatnonzero(self.weights)
        return (places if self.columns is None else self.columns[places]), self.weights[places]


@dataclass(frozen=True)
class Residual:
    """|lam w - v(alpha)|_2 as an algorithm knows it, and how far that is, at most, from the exact one."""

    norm: float
    error: float

    @classmethod
    def of(cls, difference: Vector, error: float) -> Residual:
        """Of lam w - v as computed, the entries of which are off by no more than `error` in the 2-norm."""
        norm = float(np.linalg.norm(difference))
        return cls(norm, error + 1e-9 * norm + 1e-150)


@dataclass(frozen=True)
class Scores:
    """X w + b as an algorithm knows it, each entry within relative sizes_i + absolute of the exact one."""

    z: Vector
    sizes: Vector
    relative: float
    absolute: float

    @property
    def error(self) -> Vector:
        """How far each may be off."""
        return self.relative * self.sizes + self.absolute


@dataclass(frozen=True)
class Candidate:
    """A model that an algorithm offers for certification; multipliers if it has any of its own.

    `u` are the multipliers of D w for a penalty lam |D w|_1, one for each row of D; `residual` says, for an L2 penalty,
    how well weights and multipliers go together. What an algorithm knows already need not be computed again. Vectors
    may be the algorithm's own, which it will change: whoever keeps them copies them.
    """

    w: Vector
    b: Any
    alpha: Vector | None = None
    u: Vector | None = None
    residual: Residual | None = None
    scores: Scores | None = None


@dataclass(frozen=True)
class Progress:
    """Where an algorithm believes it is, for the price of what it computes anyway: not proven, but worth a check."""

    primal: float
    gap: float
    passes: float  # over the data so far
    partial: bool = False  # whether samples were left out, which the gap knows nothing of


@dataclass(frozen=True, eq=False)
class Supports:
    """The groups with weights at every lam, found by paths on other folds of the same samples."""

    groups: dict[float, Indices]

    def add(self, lam: float, groups: Indices) -> None:
        """What a path needed there; of threads that write at the same time one may be lost, which costs time only."""
        self.groups[lam] = np.union1d(self.groups.get(lam, groups), groups)


def never() -> bool:
    """Where there is no limit on the time."""
    return False


@dataclass(frozen=True, eq=False)
class Goal:
    """What is asked of an algorithm that goes along several penalties: the present one first, then those to come."""

    penalties: tuple[Penalty, ...]
    tol: float
    atol: float
    seconds: float
    """Time left."""
    supports: Supports | None = None
    steps: int = 1
    """The most that may be made in a call of `step`, for solvers that can make several."""
    late: Callable[[], bool] = never
    """Whether a step that takes long should end with what it has."""

    def gap(self, primal: float) -> float:
        """The gap that is small enough."""
        return max(self.tol * abs(primal), self.atol)


def expected_epochs(problem: Problem, tol: float) -> float:
    """Epochs of dual coordinate ascent to a relative gap tol, about (1 + q) log(1 / tol) (Theorem 5 of the SDCA paper).

    q = L mean |x_i|_*^2 / (mu n), with L = 1 in place of a kink; an unpenalised intercept doubles the price.
    """
    penalty = problem.penalty
    norms = problem.X.row_norms(dual_exponent(penalty.norm))
    size = float(np.sum(problem.weights * norms**2)) / problem.total_weight
    q = min(problem.loss.smoothness, 1.0) * size / (penalty.strong_convexity * problem.shape[0])
    return (1.0 + q) * float(np.log(1.0 / min(max(tol, 1e-16), 0.5))) * (2.0 if problem.intercept else 1.0)


@dataclass(frozen=True)
class Solver(ABC, Generic[State]):
    """An algorithm that can be stepped: it knows nothing of stopping, tracing or certificates.

    A subclass is a frozen dataclass whose fields are its options. It must have a `name`, the traits that it `requires`
    of loss and penalty, and `begin`, `step` and `candidates`. Everything else has a default.

    Attributes
    ----------
    name : str
    requires : frozenset of Trait
        What the loss and the penalty must have.
    steps_per_check : int
        How many steps (passes, if it reports its progress) are worth one certificate: a tenth of the run at most.
    passes_per_step : int
        How often a step goes through the data.
    needs_storage : bool
        Whether its steps need a stored matrix (a `Design`); False if they ask no more than `Products` offers.
    has_own_threads : bool
        Whether its steps use threads of their own, so that BLAS must not.
    screens : bool
        Whether it leaves out columns that are proven zero by itself.
    any_storage : bool
        Whether it uses X as it is stored; others go over it row by row.
    is_final : bool
        Whether nothing else would get further where it gives up.
    summary : str
        For whom it is and what it does, in a line.
    """

    name: ClassVar[str]
    requires: ClassVar[frozenset[Trait]]
    steps_per_check: ClassVar[int]
    passes_per_step: ClassVar[int]
    needs_storage: ClassVar[bool] = True
    has_own_threads: ClassVar[bool] = False
    screens: ClassVar[bool] = False
    any_storage: ClassVar[bool] = False
    is_final: ClassVar[bool] = False
    summary: ClassVar[str] = ""

    @property
    def ignores_start(self) -> bool:
        """Whether it begins at a point of its own, so that a start has no effect."""
        return False

    def obstacle(self, problem: Any) -> str | None:
        """What keeps it from this problem beside missing traits, in words that follow the solver's name."""
        return None

    def hindrance(self, problem: Any) -> str | None:
        """All that keeps it from this problem: missing traits, a matrix that is not stored, or its `obstacle`."""
        traits = problem.traits
        if not self.requires <= traits:
            parts = " and ".join(sorted(trait.value for trait in self.requires - traits))
            return f"needs {parts}, which {problem.described} is not"
        if self.needs_storage and not problem.is_stored:
            return f"needs a matrix that is stored (a Design), which a {type(problem.X).__name__} is not"
        return self.obstacle(problem)

    @staticmethod
    def suits(problem: Any, tol: float) -> bool:
        """Whether "auto" should take it."""
        return True

    @classmethod
    def suits_path(cls, problem: Any, tol: float) -> bool:
        """Whether "auto" should take it for many penalties, one after the other."""
        return cls.suits(problem, tol)

    @abstractmethod
    def begin(self, problem: Any, start: Start, seed: int) -> State:
        """The state before the first step."""

    @abstractmethod
    def step(self, state: State) -> State:
        """The state after one more step."""

    @abstractmethod
    def candidates(self, state: State) -> Sequence[Candidate]:
        """Models worth certifying now."""

    def aim(self, state: State, goal: Goal) -> None:
        """What is asked for: tolerances, the time left, and the penalties to come, the present one first."""

    def made(self, state: State) -> int:
        """How many steps the last call of `step` has made."""
        return 1

    def retarget(self, state: State, problem: Any) -> State | None:
        """Turn to the same problem with another penalty, with what is known; None if it has to begin anew."""
        return None

    def measured(self, state: State) -> Measurements | None:
        """Products that steps have computed for the present model, and for those of the penalties that follow.

        They are certified without a pass over the data. None if there are none, so that `candidates` are certified.
        """
        return None

    def learn(self, state: State, gap: float) -> None:
        """Learn the certified gap of a measured model."""

    def conclude(self, state: State) -> None:
        """The present penalty is done: what is worth telling others is told."""

    def finished(self, state: State) -> bool:
        """Whether no step will change anything."""
        return False

    def progress(self, state: State) -> Progress | None:
        """Where it believes it is; None if it does not know, so that certificates come by the number of steps."""
        return None

    def include_all(self, state: State) -> None:
        """Take back in the samples that a `partial` progress has left out."""

    def observe(self, state: State, z: Vector, primal: float, gap: float) -> None:
        """Learn from a certificate: the scores of the best model, P there, its gap."""
