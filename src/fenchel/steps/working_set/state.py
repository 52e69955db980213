"""What primal coordinate descent knows: the weights it works on, their scores, and how good it believes to be."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from fenchel._core import kernels
from fenchel.data.design import Design
from fenchel.data.typing import Indices, Mask, Vector
from fenchel.problem import Problem
from fenchel.problem.penalties.blocks import Blocks
from fenchel.steps.base import Overflow

#: The least curvature of a sample in the quadratic model, as a part of the largest that its loss has: first, least and
#: most. It falls tenfold after a full step and rises tenfold after a shorter one.
DAMPING = (1e-2, 1e-10, 1.0)


@dataclass(frozen=True)
class Part:
    """Some groups of weights on their own, their columns copied; all others are zero."""

    members: Indices  # the columns of X, in the order of this part
    design: Design
    blocks: Blocks

    @classmethod
    def whole(cls, problem: Problem) -> Part:
        """All weights; nothing is copied."""
        d = problem.shape[1]
        blocks = problem.penalty.blocks(d)
        assert blocks is not None
        return cls(np.arange(d), problem.design, blocks)

    def only(self, groups: Indices, by_columns: bool = False) -> Part:
        """Some of these groups; sparse rows stay rows, or become columns."""
        columns, blocks = self.blocks.only(groups)
        return Part(self.members[columns], self.design.only(columns, by_columns), blocks)

    def under(self, blocks: Blocks) -> Part:
        """The same columns under another penalty; whatever is known of them stays known."""
        part = object.__new__(Part)
        part.__dict__.update(self.__dict__, blocks=blocks)
        return part

    def squares(self, shares: Vector) -> Vector:
        """sum_i shares_i x_ij^2 for every column."""
        lines, n = self.design.lines, self.design.shape[0]
        if self.design.by_rows:
            return lines.squares_some(np.arange(n), shares)
        return kernels.squares_along(lines, np.arange(len(self.members)), shares)

    @cached_property
    def rows(self) -> Design:
        """Stored by rows, for Gram matrices."""
        return self.design.stored_by_rows()

    @cached_property
    def columns(self) -> Design:
        """Stored by columns, for walks along them."""
        return self.design.stored_by_columns()


@dataclass
class DescentState:
    """Weights of a part, intercept and scores; multipliers a = -phi'(z) and curvature h = phi''(z); v = X'(s a) / W."""

    problem: Problem
    loss: kernels.Loss
    whole: Part  # what is not proven to be zero
    part: Part  # what is worked on
    w: Vector  # of the part
    b: float
    z: Vector
    size: int  # the fewest groups in the next part
    a: Vector = field(init=False)
    h: Vector = field(init=False)
    v: Vector = field(init=False)  # of the whole
    primal: float = field(init=False)
    gap: float = field(init=False)  # of the whole
    least_gap: float = np.inf  # of any part
    idle: int = 0  # steps in a row that changed nothing
    screened_gap: float = np.inf  # when groups were last screened
    last_gap: float = np.inf  # when the part was chosen
    last_size: int = 0  # weights in the last part
    parts: int = 0  # how many there were
    inside: Mask | None = None  # which groups of the whole are in the part; None if that is all of them
    grows: bool = False  # whether this one is much larger
    narrow: bool = True  # whether the Hessian of the part is formed
    goal: float = np.inf  # the gap to which the part is solved
    solved: bool = False  # whether the part is
    hessian: tuple[Part, Vector, Vector] | None = None  # of a part, at a curvature of the samples
    trail: list[tuple[Vector, float]] = field(default_factory=list)  # the last weights, to extrapolate from
    passes: float = 0.0
    entered: float = 0.0  # how many there were when the part was chosen
    patient: bool = False  # whether Hessians are formed even where they take long
    damping: float = DAMPING[0]
    _known: tuple[Design, Vector, Vector] | None = None  # a part, multipliers, and their product

    def __post_init__(self) -> None:
        self.a, self.h, mean = self.response(self.z)
        self.primal = mean + self.part.blocks.value(self.w)
        self.look_at_all()

    @cached_property
    def shares(self) -> Vector:
        """s_i / W."""
        return self.problem.weights / self.problem.total_weight

    @property
    def weights(self) -> Vector:
        """All weights of the problem."""
        w = np.zeros(self.problem.shape[1])
        w[self.part.members] = self.w
        return w

    def enter(self, part: Part) -> None:
        """Work on another part, which has all weights that are not zero."""
        self.w, self.part, self.entered = self.weights[part.members], part, self.passes

    def response(self, z: Vector) -> tuple[Vector, Vector, float]:
        """Multipliers, curvature and the mean loss at some scores."""
        problem = self.problem
        a, h, total, _ = self.loss.respond(z, problem.y, problem.weights, self.z, 0.0)
        return a, h, total / problem.total_weight

    def curvature(self) -> Vector:
        """Of the quadratic model, along the scores."""
        return self.shares * np.maximum(self.h, self.damping * self.problem.loss.smoothness)

    def offer(self, w: Vector, b: float, z: Vector) -> bool:
        """Move there if P is no larger."""
        a, h, mean = self.response(z)
        primal = mean + self.part.blocks.value(w)
        if not primal <= self.primal + 1e-14 * abs(self.primal):
            return False
        self.w, self.b, self.z, self.a, self.h, self.primal = w, b, z, a, h, primal
        return True

    def search(self, w: Vector, b: float, scores: Vector) -> None:
        """Go towards a model whose scores differ by `scores`: all the way, or half of it, ..."""
        t, start, shift = 1.0, self.w, b - self.b
        while t > 1e-6:
            goal = w if t == 1.0 else start + t * (w - start)
            if self.offer(goal, self.b + t * shift, self.z + t * scores):
                break
            t *= 0.5
        self.damping = float(np.clip(self.damping * (0.1 if t == 1.0 else 10.0), *DAMPING[1:]))

    def look_at_all(self) -> None:
        """The dual vector of the whole, and the gap."""
        if not np.isfinite(self.primal):
            raise Overflow("the objective overflows; rescale the features or lam")
        self.v, self.gap = self._look(self.whole)

    def look_at_part(self) -> float:
        """The gap of the problem that has the weights of this part only."""
        v, gap = self._look(self.part)
        if self.part is self.whole:
            self.v, self.gap = v, gap
        return gap

    def _look(self, part: Part) -> tuple[Vector, float]:
        v = self.dual_vector(part)
        return v, self._gap(part, v)

    def dual_vector(self, part: Part) -> Vector:
        """v of a part; the last one is remembered for as long as the multipliers are the same."""
        if self._known is None or self._known[0] is not part.design or self._known[1] is not self.a:
            self.passes += part.design.nnz / max(1, self.problem.design.nnz)
            self._known = part.design, self.a, part.design.rmatvec(self.shares * self.a)
        return self._known[2]

    def know(self, v: Vector) -> None:
        """The dual vector of the part that is worked on, which somebody else has computed."""
        self._known = self.part.design, self.a, v

    @staticmethod
    def scale(part: Part, v: Vector) -> float:
        """The multiple of the multipliers that is feasible for a norm."""
        worst = float(np.max(part.blocks.norms(v) / part.blocks.threshold, initial=0.0))
        return 1.0 if part.blocks.ridge or worst <= 1.0 else 1.0 / worst

    def _gap(self, part: Part, v: Vector) -> float:
        """P - D at that multiple: the sum of what every sample and the penalty lack."""
        problem, blocks, scale = self.problem, part.blocks, self.scale(part, v)
        found = self.part.blocks.value(self.w)
        if blocks.ridge:
            found += float(np.sum(blocks.excess(v) ** 2)) / (2.0 * blocks.ridge)
        if scale < 1.0:
            found += self.loss.gap_sum(self.z, problem.y, problem.weights, scale * self.a) / problem.total_weight
        if problem.intercept:
            found += abs(float(self.shares @ self.a)) * (1.0 + abs(self.b))
        return found - scale * float(v @ self.weights[part.members])
