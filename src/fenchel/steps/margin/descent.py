"""Margins by momentum (Ji, Srebro and Telgarsky 2021), and the two gradient methods that it is compared with.

All three minimise the exponential or the logistic loss of a linear classifier, whose direction tends to that of the
largest margin g. On rows of norm at most 1 the margin is g - O(1/log t) for gradient descent, g - O(1/t) for normalised
gradients, and g - 4 log(n) / (g t (t + 3)) with momentum. `state.py` has the steps and the proof.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fenchel.problem import Interpolation
from fenchel.problem.checks import require_one_of
from fenchel.problem.vectors import set_nonnegative, set_positive
from fenchel.steps.base import Progress, Start
from fenchel.steps.margin.potentials import LOGISTIC_STEP, ExponentialPotential, LogisticPotential, Potential
from fenchel.steps.margin.rows import MarginRows, MarginSolver
from fenchel.steps.margin.state import Descent, DualForm, PrimalForm

LOSSES = ("exponential", "logistic")


class _Gradients(MarginSolver[Descent]):
    """The base of `Margin`, `GradientDescent` and `NormalizedGradient`; a step is one iteration."""

    steps_per_check = 100
    passes_per_step = 2

    def step(self, state: Descent) -> Descent:
        """One iteration."""
        state.step()
        return state

    def progress(self, state: Descent) -> Progress:
        return state.progress()


@dataclass(frozen=True)
class Margin(_Gradients):
    """Algorithm 1 of Ji, Srebro and Telgarsky 2021: mirror descent with momentum on the dual simplex of a hard margin.

    Parameters
    ----------
    loss : {"exponential", "logistic"}, default "exponential"
        Whose slopes are the multipliers.
    form : {"primal", "dual"}, default "primal"
        Whether to keep weights, or scores and products with the Gram matrix Z Z'. The iterates are the same.
    step_size : "adaptive" or float, default "adaptive"
        In units of 1 / max_i |z_i|^2. 1 is the paper's, with momentum t / (t + 1); "adaptive" takes the longest steps
        for which the same proof holds, and the momentum that belongs to them.
    shift : float, optional
        Of the logistic loss log(1 + exp(z - shift)); by default log n, for which 1 - 1/e is a step size for every n.
        0 is the paper's logistic loss, for which only 1/n is known to be.
    """

    loss: str = "exponential"
    form: str = "primal"
    step_size: str | float = "adaptive"
    shift: float | None = None
    name = "margin"
    summary = "the largest margin by momentum on the dual simplex"

    def __post_init__(self) -> None:
        require_one_of(self.loss, LOSSES, "margin: loss")
        require_one_of(self.form, ("primal", "dual"), "margin: form")
        if isinstance(self.step_size, str):
            require_one_of(self.step_size, ("adaptive",), "margin: step_size")
        else:
            set_positive(self, "step_size")
        if self.shift is not None:
            set_nonnegative(self, "shift")
            if self.loss != "logistic":
                raise ValueError('margin: shift would have no effect on the exponential loss; pass loss="logistic"')

    def begin(self, problem: Interpolation, start: Start, seed: int) -> Descent:
        rows = MarginRows.of(problem)
        potential = potential_of(self.loss, rows.count, self.shift)
        form = (PrimalForm if self.form == "primal" else DualForm)(rows, potential)
        if isinstance(self.step_size, str):
            return Descent(form, True, None)
        length = float(self.step_size) * rows.unit
        return Descent(form, True, lambda state: length)


@dataclass(frozen=True)
class GradientDescent(_Gradients):
    """Gradient descent on the mean loss: the margin tends to the largest one like 1 / log t.

    Parameters
    ----------
    loss : {"exponential", "logistic"}, default "exponential"
    step_size : float, optional
        In units of 1 / max_i |z_i|^2; by default 1, or 4 for the logistic loss: one over the smoothness of the mean
        loss where it is at most 1.
    """

    loss: str = "exponential"
    step_size: float | None = None
    name = "gradient_descent"
    summary = "baseline: gradient descent on the exponential or logistic loss"

    def __post_init__(self) -> None:
        require_one_of(self.loss, LOSSES, "gradient_descent: loss")
        if self.step_size is not None:
            set_positive(self, "step_size")

    def begin(self, problem: Interpolation, start: Start, seed: int) -> Descent:
        rows, potential = MarginRows.of(problem), potential_of(self.loss, 1, 0.0)
        step = self.step_size or (4.0 if potential.is_logistic else 1.0)
        length = step * rows.unit / rows.count
        return Descent(PrimalForm(rows, potential), False, lambda state: length * potential.slope(state.point.psi))


@dataclass(frozen=True)
class NormalizedGradient(_Gradients):
    """Gradient descent on psi, the logarithm of the loss: steps along the gradient over the loss.

    Parameters
    ----------
    loss : {"exponential", "logistic"}, default "exponential"
        The logistic one is shifted as in `Margin`.
    steps : {"constant", "root"}, default "constant"
        1 (Ji and Telgarsky 2019), or 1 / sqrt(t + 1) (Nacson et al. 2018), in units of `step_size`.
    step_size : float, optional
        In units of 1 / max_i |z_i|^2; by default 1, or 1 - 1/e for the logistic loss.
    """

    loss: str = "exponential"
    steps: str = "constant"
    step_size: float | None = None
    name = "normalized_gradient"
    summary = "baseline: gradient descent on the logarithm of the loss"

    def __post_init__(self) -> None:
        require_one_of(self.loss, LOSSES, "normalized_gradient: loss")
        require_one_of(self.steps, ("constant", "root"), "normalized_gradient: steps")
        if self.step_size is not None:
            set_positive(self, "step_size")

    def begin(self, problem: Interpolation, start: Start, seed: int) -> Descent:
        rows = MarginRows.of(problem)
        potential = potential_of(self.loss, rows.count, None)
        length = (self.step_size or (LOGISTIC_STEP if potential.is_logistic else 1.0)) * rows.unit
        power = 0.5 if self.steps == "root" else 0.0
        return Descent(PrimalForm(rows, potential), False, lambda state: length / (state.steps + 1.0) ** power)


def potential_of(loss: str, count: int, shift: float | None) -> Potential:
    """psi of a loss for so many samples."""
    if loss == "exponential":
        return ExponentialPotential()
    return LogisticPotential(float(np.log(count)) if shift is None else shift)
