"""What an algorithm is: something that can be stepped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from fenchel.data.design import Vector
from fenchel.problem import Problem, Trait

State = TypeVar("State")


class Overflow(ArithmeticError):
    """An iteration left the range of floating-point numbers; what it found before still counts."""


@dataclass(frozen=True)
class Start:
    """Where an algorithm begins: weights, intercept, multipliers."""

    w: Vector
    b: float
    alpha: Vector


@dataclass(frozen=True)
class Candidate:
    """A model that an algorithm offers for certification; multipliers if it has any of its own."""

    w: Vector
    b: float
    alpha: Vector | None = None


@dataclass(frozen=True)
class Progress:
    """Where an algorithm believes it is, for the price of what it computes anyway: not proven, but worth a check."""

    primal: float
    gap: float
    passes: float  # over the data so far


class Solver(Protocol, Generic[State]):
    """An algorithm that can be stepped: it knows nothing of stopping, tracing or certificates.

    Attributes
    ----------
    name : str
    requires : traits that the loss and the penalty must have
    steps_per_check : how many steps are worth one certificate; sized so that checking costs a tenth of the run at most
    passes_per_step : how often a step goes through the data

    Three more methods are optional: `obstacle(problem)` says in words what else stands in the way, or returns None;
    `progress(state) -> Progress` says when a certificate is worth its price; `observe(state, z, gap)` learns from one:
    the scores of the best model, and its certified gap.
    """

    name: str
    requires: frozenset[Trait]
    steps_per_check: int
    passes_per_step: int

    def begin(self, problem: Problem, start: Start, seed: int) -> State:
        """The state before the first step."""

    def step(self, state: State) -> State:
        """The state after one more step."""

    def candidates(self, state: State) -> Sequence[Candidate]:
        """Models worth certifying now."""
