"""The search of `certified_path` from the largest lam down: models, and their bounds between their lams."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fenchel.certificate import Certificate
from fenchel.certificate.certificate import NOTHING
from fenchel.certificate.evidence import Evidence
from fenchel.certificate.judge import Judge
from fenchel.data.products import UNIT_ROUNDOFF
from fenchel.data.typing import Vector
from fenchel.problem import Problem
from fenchel.problem.vectors import frozen
from fenchel.solver.paths.intervals import Anchor, CertifiedPath, Knot, between
from fenchel.solver.paths.screening import solve_near
from fenchel.solver.progress import Bar
from fenchel.solver.result import Result
from fenchel.solver.solve import Clock, Request, solve_request


@dataclass(frozen=True)
class SearchTuning:
    """Tolerances and step sizes of the search.

    `python -m benchmarks.tuning all solver.paths.interval_search`: times with half and with double are 1.12 and 1.15
    for `share`, 1.17 and 1.26 for `first_step`, 1.98 and 1.08 for `growth`.
    """

    share: float = 0.8  # largest gap of a model at its own lam, as a fraction of eps: the rest is for the interval
    first_step: float = 8.0  # first step in log lam, in units of sqrt(eps)
    growth: float = 2.0  # bound on the factor between two steps, up or down


TUNING = SearchTuning()
#: The smallest relative distance of two lams: half of the digits, or what is between them is rounding.
CLOSEST = float(np.sqrt(UNIT_ROUNDOFF))


@dataclass(frozen=True, eq=False)
class Node:
    """A model at its own lam with its bounds there; P_lam = loss + lam size elsewhere."""

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
class Crossing:
    """Two models at the lam where their objectives cross: bounds for each, and their mixture."""

    judge: Judge
    joint: tuple[Anchor, Anchor]  # of the model above, of the model below
    mixture: tuple[Vector, float, Vector]  # w, b, alpha

    def proves(self, eps: float) -> bool:
        """Whether both are eps-optimal here, and therefore from here to their own lams."""
        return all(anchor.proves(eps) for anchor in self.joint)


class Incomplete(Exception):
    """The search ends early: Ctrl-C, the time limit, or rounding."""


class IntervalSearch:
    """Nodes from the largest lam down, the bounds between them, and pending nodes below."""

    def __init__(
        self, problem: Problem, lam_min: float, lam_max: float, eps: float, share: float, clock: Clock, options: Any
    ) -> None:
        problem = problem.replace(X=problem.X.using(options.get("n_threads", 1)))
        self.problem, self.lam_min, self.lam_max, self.eps, self.share = problem, lam_min, lam_max, eps, share
        self.clock, self.request = clock, Request.of(tol=share * eps, **options)
        self.n_solves = 0
        self.nodes: list[Node] = []
        self.joints: list[tuple[Anchor, Anchor]] = []  # between nodes k and k + 1: of the upper one, of the lower one
        self.pending: list[Node] = []
        self.step = TUNING.first_step * np.sqrt(eps)  # in log lam
        self.growth = TUNING.growth

    def run(self, bar: Bar) -> str:
        """Search down to lam_min; the reason if it ends before."""
        try:
            self.nodes.append(self.solve(self.lam_max, None))
            while self.nodes[-1].lam > self.lam_min:
                self.advance()
                done = np.log(self.lam_max / self.nodes[-1].lam) / np.log(self.lam_max / self.lam_min)
                bar.show(done, f"lam {self.nodes[-1].lam:.3g}, {self.n_solves} solves, {len(self.nodes)} models")
        except Incomplete as reason:
            return str(reason)
        except KeyboardInterrupt:  # between two solves
            return "interrupted"
        return ""

    def advance(self) -> None:
        """Prove the interval between the last node and the next one below, or insert another node."""
        above = self.nodes[-1]
        if not self.pending:
            self.pending.append(self.solve(self._next_lam(above.lam), above))
        crossing = self.cross(self.pending[-1], above)
        if not crossing.proves(self.eps):
            self.pending.append(self.insert(crossing))
            return
        self.joints.append(crossing.joint)
        self.nodes.append(self.pending.pop())
        if not self.pending:
            self.step, self.growth = self.step * self.growth, TUNING.growth

    def _next_lam(self, lam: float) -> float:
        left = np.log(lam / self.lam_min)
        return self.lam_min if left <= 1.2 * self.step else float(lam * np.exp(-self.step))

    def cross(self, below: Node, above: Node) -> Crossing:
        """The bounds of two models where their objectives cross."""
        lam = crossing_lam(below, above)
        if not above.lam - below.lam > CLOSEST * above.lam:
            raise Incomplete(f"eps={self.eps:g} cannot be proven in double precision around lam = {lam:g}")
        t = (lam - below.lam) / (above.lam - below.lam)
        alpha = (1.0 - t) * below.alpha + t * above.alpha
        judge = Judge(self.problem.with_lam(lam))
        judge.try_multipliers(alpha, how="multipliers between two solutions")
        value, error = between(lam, (below.lam, below.anchor.lower), (above.lam, above.anchor.lower))
        lower = max(value - error, judge.best.lower)
        first, second = (Anchor(lam, judge.consider(node.w, node.b).upper, lower) for node in (above, below))
        w, b = (1.0 - t) * below.w + t * above.w, (1.0 - t) * below.b + t * above.b
        return Crossing(judge, (first, second), (w, b, alpha))

    def insert(self, crossing: Crossing) -> Node:
        """A node at a crossing where neither model is good enough: their mixture, or else a solver's from there."""
        judge, (w, b, _) = crossing.judge, crossing.mixture
        judge.consider(w, b)
        judge.try_gradient()
        needed = judge.gap / (TUNING.share * self.eps * max(abs(judge.primal.value), NOTHING))
        if not self.pending[1:]:  # the first node between two solves determines the next step
            self.growth = float(np.clip((0.7 / needed) ** 0.5, 1.0 / TUNING.growth, TUNING.growth))
        if needed > 1.0:
            return self.solve(judge.problem.penalty.lam, crossing.mixture)
        certificate = judge.certificate(self.share * self.eps)
        return self._node(judge.problem, judge.w, judge.b, judge.best.alpha, certificate, solved=False)

    def solve(self, lam: float, start: Any) -> Node:
        """A node from a solver."""
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
            raise Incomplete("interrupted")
        if self.clock.over:
            raise Incomplete("max_seconds is exceeded")
        if result.certificate.relative_gap > 0.9 * self.eps:
            raise Incomplete(
                f"at lam = {lam:g} {result.solver} reached a relative gap of only "
                f"{result.certificate.relative_gap:.2g} ({result.status})"
            )
        if result.certificate.primal <= 0.0:
            raise Incomplete(
                f"at lam = {lam:g} the objective is {result.certificate.primal:.3g}, and eps P needs a positive one"
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
        """The nodes with their proven intervals."""
        knots = []
        for k, node in enumerate(self.nodes):
            anchors = [self.joints[k - 1][1]] if k else []
            anchors.append(node.anchor)
            if k < len(self.joints):
                anchors.append(self.joints[k][0])
            proof = tuple(sorted(anchors, key=lambda anchor: anchor.lam))
            knots.append(Knot(node.lam, node.w, node.b, node.certificate, node.solved, proof))
        return CertifiedPath(self.eps, self.lam_min, self.lam_max, tuple(knots), self.n_solves)


def crossing_lam(below: Node, above: Node) -> float:
    """The lam between two models where their objectives cross; the geometric mean if they do not."""
    slope = below.size - above.size
    lam = (above.loss - below.loss) / slope if slope > 0.0 else np.nan
    inside = below.lam < lam < above.lam
    return float(lam if inside else np.sqrt(below.lam) * np.sqrt(above.lam))
