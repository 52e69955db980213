"""The judge of largest margins: the best classifier, the best bound on all, or a proof that none separates."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from fenchel.certificate import judge
from fenchel.certificate.bounds.rounding import PrimalBound
from fenchel.certificate.certificate import Proof
from fenchel.certificate.interpolation.bounds import Multipliers, dual_bound
from fenchel.certificate.interpolation.infeasible import FarkasCertificate, prove
from fenchel.certificate.judge import Record, judge_of
from fenchel.certificate.margin.bounds import Margin, exceeded_by_none, margin_of
from fenchel.certificate.margin.interval import MarginInterval
from fenchel.certificate.margin.support import may_determine
from fenchel.data.products import UNIT_ROUNDOFF
from fenchel.data.typing import Vector
from fenchel.problem.margin import LargestMargin, Model
from fenchel.problem.penalties import L2
from fenchel.problem.vectors import frozen
from fenchel.steps import Scores


@dataclass(frozen=True)
class MarginJudgeTuning:
    """`python -m benchmarks.tuning all certificate.margin.judge`: figures in docs/performance/tuning.md."""

    contradiction: float = 0.03  # |A'q| beside its terms from which multipliers may prove that no model separates


TUNING = MarginJudgeTuning()


@dataclass(frozen=True)
class MarginBound:
    """D of multipliers q: minus a margin that no classifier exceeds."""

    value: float
    alpha: Vector = field(repr=False)
    how: str

    @property
    def lower(self) -> float:
        """The same: `value` has its allowance for rounding already."""
        return self.value


class MarginJudge(Record):
    """P is minus the best margin known, at most 0; D minus the least bound."""

    problem: LargestMargin
    best: MarginBound

    def __init__(self, problem: LargestMargin) -> None:
        self.problem = problem
        weights, intercept, _ = problem.shapes
        self.w, self.b = np.zeros(weights), np.zeros(intercept) if intercept else 0.0
        self.primal = PrimalBound(0.0, 0.0, np.zeros(problem.n_constraints))
        self.best = self.feasible = MarginBound(-np.inf, np.zeros(problem.n_constraints), "none")
        self.rounded = 0.0  # the relative rounding error of the margin
        self.cancelled = np.inf
        self.contradiction: FarkasCertificate | None = None

    @property
    def margin(self) -> float:
        """The largest margin known; 0 if no classifier is known that separates the samples."""
        return 0.0 - self.primal.value

    @property
    def upper(self) -> float:
        """No classifier has a margin above this."""
        return 0.0 - self.best.lower

    @property
    def model(self) -> Model | None:
        """The classifier with this margin."""
        return Model(self.w, np.atleast_1d(self.b)) if self.margin > 0.0 else None

    @property
    def at_zero(self) -> float:
        """No margin counts as zero."""
        return 0.0

    @property
    def evidence(self) -> Proof | None:  # type: ignore[override]
        """Labels and zeros are not proven for margins."""
        return None

    def consider(self, w: Vector, b: object, scores: Scores | None = None) -> PrimalBound:
        """Keep a model whose margin is the largest so far; `scores` is not used."""
        if not np.any(w):
            return PrimalBound(0.0, 0.0, np.zeros(self.problem.n_constraints))
        model = Model(np.asarray(w), np.atleast_1d(np.asarray(b, dtype=np.float64)))
        return self.keep_model(model, margin_of(self.problem, model, self._accuracy))

    def keep_model(self, model: Model, margin: Margin) -> PrimalBound:
        """Keep a model, whose margin is known, if it is the best so far."""
        found = PrimalBound(-margin.lower, -margin.lower, margin.differences)
        if margin.lower > self.margin:
            self.rounded = margin.rounding
            self.w, self.b = frozen(model.w), float(model.b[0]) if self.problem.is_binary else model.b
            self.primal = found
        return found

    @property
    def _accuracy(self) -> float:
        """The relative error of margins that is small beside the interval."""
        return judge.TUNING.most_rounding * self.gap / self.margin if self.margin > 0.0 else np.inf

    def try_multipliers(self, alpha: Vector, how: str, u: Vector | None = None) -> None:
        """Keep the bound of q if it is the least so far; q may also prove that no model separates the samples."""
        q = np.ravel(np.maximum(alpha, 0.0))
        upper = exceeded_by_none(self.problem, q)
        if not upper < self.upper or self.contradiction is not None:
            return
        self.best = self.feasible = MarginBound(-upper, q, how)
        if not self.margin > 0.0 and self.problem.is_stored:
            self._try_contradiction(q / q.max(), how)
        elif self.margin > 0.0 and self.rounded > self._accuracy:  # tight bounds on rounding errors are worth it now
            self.consider(self.w, self.b)

    @np.errstate(all="ignore")  # what overflows or underflows proves nothing
    def _try_contradiction(self, q: Vector, how: str) -> None:
        problem = self.problem.hard_margin
        bound = dual_bound(problem, Multipliers.of(problem, self.problem.signed(q), how))
        hopeless = bound.cancellation > min(TUNING.contradiction, 0.5 * self.cancelled)
        if bound.absolute.any() and hopeless:
            return
        self.cancelled = bound.cancellation
        self.contradiction = prove(problem, bound)
        if self.contradiction is not None:
            self.best = self.feasible = MarginBound(0.0, q, how)

    def try_equal_samples(self) -> None:
        """Two samples with the same scores and opposite labels prove that nothing separates.

        The squares of their violations of a least score of 1 add up to (1 - z)^2 + (1 + z)^2 >= 2.
        """
        problem, pair = self.problem, self.problem.contradictory_pair
        if pair is None or self.contradiction is not None:
            return
        n, how = len(problem.codes), "two equal samples with different labels"
        q = np.zeros(n)
        q[pair] = np.sqrt(0.5 * n)
        excess = np.sqrt(2.0 / n) * (1.0 - 4.0 * UNIT_ROUNDOFF)
        self.contradiction = FarkasCertificate(problem.y * q, excess, how, L2(1.0), problem.intercept, np.ones(n))
        self.best = self.feasible = MarginBound(0.0, q, how)

    def try_gradient(self, z: Vector | None = None) -> None:
        """Multipliers from the differences of a model: those of a soft minimum, and none but the least ones.

        With a kernel their price is that of the whole Gram matrix: of the best model only its coefficients are tried.
        """
        if not self.problem.is_stored:
            if self.problem.is_binary:
                self.try_multipliers(self.problem.y * self.w, "the model's coefficients")
            elif self.upper == np.inf:
                self.try_multipliers(np.ones(self.problem.n_constraints), "equal multipliers")
            return
        m = np.ravel(self.primal.z if z is None else z)
        self.try_multipliers(np.ones(len(m)), "equal multipliers")
        if not np.all(np.isfinite(m)):
            return
        least, typical = float(m.min()), float(np.median(m))
        for width in (1.0, 0.3, 0.1, 0.03):
            spread = width * (typical - least)
            if spread > 0.0:
                with np.errstate(under="ignore"):
                    self.try_multipliers(np.exp(-(m - least) / spread), "soft minimum of the model's scores")
                self.try_multipliers(np.maximum(least + spread - m, 0.0), "the model's least scores")

    def fit(self, tol: float) -> None:
        """Nothing better is known than `try_gradient`."""

    def reached(self, tol: float, atol: float = 0.0) -> bool:
        """Whether the interval is narrow enough, or it is proven that no model separates the samples."""
        if self.contradiction is not None or (self.problem.any_margin and self.margin > 0.0):
            return True
        return super().reached(tol, atol)

    def interval(self, lower: float, wrong: int, tol: float) -> MarginInterval:
        """What has been found, beside the margin of a model and the number of its mistakes."""
        problem, best, q = self.problem, self.model, self.best.alpha
        how = ", ".join(filter(None, (self.best.how, problem.assumption)))
        mask = None if best is None else may_determine(problem, best, self.margin, self.upper)
        n = len(problem.codes)
        return MarginInterval(
            lower,
            self.upper,
            self.margin,
            problem.p,
            wrong,
            n,
            problem.k,
            problem.intercept,
            how,
            tol,
            None if best is None else (best.w, best.b),
            None if not q.any() else q.reshape((n,) if problem.is_binary else (n, -1)),
            None if mask is None else np.flatnonzero(mask),
            self.contradiction,
            problem.kind,
        )


judge_of.register(LargestMargin, MarginJudge)
