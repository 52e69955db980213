"""The walk of `certified_path` from the largest lam down: models, and what proves them good between their lams."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fenchel.certificate import Certificate
from fenchel.certificate.certificate import NOTHING
from fenchel.certificate.evidence import Evidence
from fenchel.certificate.judge import Judge
from fenchel.data.typing import Vector
from fenchel.problem import Problem
from fenchel.problem.vectors import frozen
from fenchel.solver.paths.intervals import Anchor, CertifiedPath, Knot, between
from fenchel.solver.paths.screening import solve_near
from fenchel.solver.progress import Bar
from fenchel.solver.result import Result
from fenchel.solver.solve import Clock, Request, solve_request

#: The share of eps that a mixture of two models may use at its own lam.
MIXTURE = 0.8
#: Two lams as close as this (relatively) are one: more cannot be proven in double precision.
CLOSEST = 1e-9


@dataclass(frozen=True, eq=False)
class Node:
    """A model at its own lam: what is known there, and P_lam = loss + lam size elsewhere."""

    anchor: Anchor
    w: Vector
    b: float
    alpha: Vector
    certificate: Certificate
    size: float
    solved: bool

    @property
    def lam(self) -> float:
        return self.anchor.lam

    @property
    def loss(self) -> float:
        """The mean loss."""
        return self.certificate.primal - self.lam * self.size


@dataclass(frozen=True, eq=False)
class Meeting:
    """Two models at the lam where they are equally good: what is proven of each, and their mixture there."""

    judge: Judge
    joint: tuple[Anchor, Anchor]  # of the model above, of the model below
    mixture: tuple[Vector, float, Vector]  # w, b, alpha

    def proves(self, eps: float) -> bool:
        """Whether both are good enough, and so are good enough from here to their own lams."""
        return all(anchor.proves(eps) for anchor in self.joint)


class CutShort(Exception):
    """Ctrl-C, the end of the time, or of what double precision can prove."""


class Walk:
    """Nodes from the largest lam down, what joins them, and nodes below that wait to be joined."""

    def __init__(
        self, problem: Problem, lam_min: float, lam_max: float, eps: float, share: float, clock: Clock, options: Any
    ) -> None:
        problem = problem.replace(X=problem.X.using(options.get("n_threads", 1)))
        self.problem, self.lam_min, self.lam_max, self.eps, self.share = problem, lam_min, lam_max, eps, share
        self.clock, self.request = clock, Request.of(tol=share * eps, **options)
        self.n_solves = 0
        self.nodes: list[Node] = []
        self.joints: list[tuple[Anchor, Anchor]] = []  # between nodes k and k + 1: of the upper one, of the lower one
        self.waiting: list[Node] = []
        self.step = 8.0 * np.sqrt(eps)  # in log lam
        self.growth = 2.0

    def run(self, bar: Bar) -> str:
        """Walk down to lam_min; why it ended before, if it did."""
        try:
            self.nodes.append(self.solve(self.lam_max, None))
            while self.nodes[-1].lam > self.lam_min:
                self.advance()
                done = np.log(self.lam_max / self.nodes[-1].lam) / np.log(self.lam_max / self.lam_min)
                bar.show(done, f"lam {self.nodes[-1].lam:.3g}, {self.n_solves} solves, {len(self.nodes)} models")
        except CutShort as reason:
            return str(reason)
        except KeyboardInterrupt:  # between two solves
            return "interrupted"
        return ""

    def advance(self) -> None:
        """Join the last node to the next one below, or put another between them."""
        above = self.nodes[-1]
        if not self.waiting:
            self.waiting.append(self.solve(self._next_lam(above.lam), above))
        meeting = self.meet(self.waiting[-1], above)
        if not meeting.proves(self.eps):
            self.waiting.append(self.bridge(meeting))
            return
        self.joints.append(meeting.joint)
        self.nodes.append(self.waiting.pop())
        if not self.waiting:
            self.step, self.growth = self.step * self.growth, 2.0

    def _next_lam(self, lam: float) -> float:
        left = np.log(lam / self.lam_min)
        return self.lam_min if left <= 1.2 * self.step else float(lam * np.exp(-self.step))

    def meet(self, below: Node, above: Node) -> Meeting:
        """Where two models are equally good, and what is proven of both there."""
        lam = meeting_point(below, above)
        if not above.lam - below.lam > CLOSEST * above.lam:
            raise CutShort(f"eps={self.eps:g} cannot be proven in double precision around lam = {lam:g}")
        share = (lam - below.lam) / (above.lam - below.lam)
        alpha = (1.0 - share) * below.alpha + share * above.alpha
        judge = Judge(self.problem.with_lam(lam))
        judge.try_multipliers(alpha, how="multipliers between two solutions")
        value, error = between(lam, (below.lam, below.anchor.lower), (above.lam, above.anchor.lower))
        lower = max(value - error, judge.best.lower)
        first, second = (Anchor(lam, judge.consider(node.w, node.b).upper, lower) for node in (above, below))
        w, b = (1.0 - share) * below.w + share * above.w, (1.0 - share) * below.b + share * above.b
        return Meeting(judge, (first, second), (w, b, alpha))

    def bridge(self, meeting: Meeting) -> Node:
        """A node where two models met and were not good enough: their mixture, or else what a solver finds from it."""
        judge, (w, b, _) = meeting.judge, meeting.mixture
        judge.consider(w, b)
        judge.try_gradient()
        needed = judge.gap / (MIXTURE * self.eps * max(abs(judge.primal.value), NOTHING))
        if not self.waiting[1:]:  # the first between two solves says how far apart they may be
            self.growth = float(np.clip((0.7 / needed) ** 0.5, 0.4, 2.0))
        if needed > 1.0:
            return self.solve(judge.problem.penalty.lam, meeting.mixture)
        certificate = judge.certificate(self.share * self.eps)
        return self._node(judge.problem, judge.w, judge.b, judge.best.alpha, certificate, solved=False)

    def solve(self, lam: float, start: Any) -> Node:
        """A node that a solver finds."""
        problem = self.problem.with_lam(lam)
        self.n_solves += 1
        if start is None:
            result = solve_request(problem, self.request, None, self.clock)
        else:
            parts = (start.w, start.b, start.alpha) if isinstance(start, Node) else start
            result = solve_near(problem, parts, self.request, self.clock)
        self._require_usable(result, lam)
        alpha = result.multipliers
        if alpha is None:  # as result.alpha, without a check that X is what it was
            alpha = -problem.loss.derivative(problem.scores(result.w, result.b), problem.y)
        return self._node(problem, result.w, result.b, alpha, result.certificate, solved=True)

    def _require_usable(self, result: Result, lam: float) -> None:
        if result.status == "interrupted":
            raise CutShort("interrupted")
        if self.clock.over:
            raise CutShort("the time is over")
        if result.certificate.relative_gap > 0.9 * self.eps:
            raise CutShort(
                f"at lam = {lam:g} {result.solver} proved no more than a relative gap of "
                f"{result.certificate.relative_gap:.2g} ({result.status})"
            )

    def _node(
        self, problem: Problem, w: Vector, b: float, alpha: Vector, certificate: Certificate, solved: bool
    ) -> Node:
        evidence = certificate.evidence
        assert isinstance(evidence, Evidence)  # it was made here, with its data
        size = problem.penalty.value(w) / problem.penalty.lam
        anchor = Anchor(problem.penalty.lam, evidence.upper, evidence.lower)
        return Node(anchor, frozen(w), float(b), frozen(alpha), certificate, size, solved)

    def path(self) -> CertifiedPath:
        """What is proven: the nodes with the intervals between their joints."""
        knots = []
        for k, node in enumerate(self.nodes):
            anchors = [self.joints[k - 1][1]] if k else []
            anchors.append(node.anchor)
            if k < len(self.joints):
                anchors.append(self.joints[k][0])
            proof = tuple(sorted(anchors, key=lambda anchor: anchor.lam))
            knots.append(Knot(node.lam, node.w, node.b, node.certificate, node.solved, proof))
        return CertifiedPath(self.eps, self.lam_min, self.lam_max, tuple(knots), self.n_solves)


def meeting_point(below: Node, above: Node) -> float:
    """The lam where the objectives of two models cross, kept inside; the middle where they are one."""
    rise = below.size - above.size
    lam = (above.loss - below.loss) / rise if rise > 0.0 else np.nan
    inside = below.lam < lam < above.lam
    return float(lam if inside else np.sqrt(below.lam) * np.sqrt(above.lam))
