"""The search for a large margin and for multipliers that bound it, or prove that there is none.

p = 2 is the hard-margin problem of `Interpolation`, solved by the solvers that raise its dual. More than two classes
have an intercept each, which is the weight of a constant column; the quadratic around its last value is moved after
each solution (the proximal-point method), so that it is not penalised in the limit.

p = 1 and p = inf are linear programs. For other p, and where these are too large, a sequence of problems with p = 2 on
scaled columns c_j x_j is solved: |w|_p^2 is concave in the squares of w for p < 2, and |v|_p*^2 in those of v = A'q for
p > 2, so that c_j^2 = |w_j|^(2 - p), or |v_j|^(p* - 2), lower the norm in every round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from fenchel.certificate.interpolation.bounds import Multipliers, dual_bound
from fenchel.certificate.interpolation.infeasible import FarkasCertificate, prove
from fenchel.certificate.margin.programs import fits, linear_program
from fenchel.certificate.margin.question import MarginQuestion, Model, times_columns
from fenchel.certificate.margin.working_set import WorkingSet
from fenchel.certificate.search.ascent import offers
from fenchel.data.design import Design
from fenchel.data.products import Products
from fenchel.data.typing import Vector
from fenchel.problem import Interpolation
from fenchel.problem.penalties import L2
from fenchel.problem.sets import HalfLine
from fenchel.problem.vectors import dual_exponent
from fenchel.steps import Candidate
from fenchel.steps.choose import dual_solvers
from fenchel.steps.interpolation.separation import Basis, separations


@dataclass(frozen=True)
class SearchTuning:
    """When the search ends. `python -m benchmarks.tuning certificate.margin.search patience 3 12 --rows
    "^max margin digits 2 p=2|^margin interval digits 2 p=1.5"`: the interval for p = 1.5 takes 0.50 and 1.51 of the
    time, with the same ends to six digits; the largest margin for p = 2, 1.01 and 1.00.

    `floor` 0.05 0.2 with --rows "^margin interval digits 2 p=1.5|^max margin digits 2 p=1.5": 0.86 and 1.03 of the time
    for the interval, whose lower end is 0.361503, 0.361695 as it is, and 0.361732; 0.88 and 1.06 for the largest
    margin. `rounding` 0.005 0.02 with --rows "^m.* digits 2 p=(1$|2)": 0.98 to 1.01. The others are not measured.
    """

    contradiction: float = 0.03  # |A'q| beside its terms from which multipliers may prove that no model separates;
    again: float = 0.1  # another proof is tried where it is this part of what it was
    patience: int = 6  # candidates in a row that lower neither end
    rounding: float = 0.01  # rounding errors are bounded tightly if they are above this part of the tolerance
    constant: float = 100.0  # the constant column beside the longest row
    moves: int = 6  # of the intercepts' centres
    rounds: int = 60  # of scaled columns
    floor: float = 0.1  # of |w_j|, or |v_j|, beside the largest, in the first round,
    falling: float = 0.5  # times this in each of the next ones, down to
    least: float = 1e-9


TUNING = SearchTuning()


@dataclass(frozen=True)
class MarginEffort:
    """How hard to look."""

    tol: float  # the relative width of the interval at which the search ends
    passes: int  # over the data, for each problem with p = 2


EFFORTS = {"low": MarginEffort(1e-3, 0), "auto": MarginEffort(1e-3, 2000), "high": MarginEffort(1e-10, 20_000)}


@dataclass(frozen=True)
class Offer:
    """A model and multipliers of a solver."""

    model: Model
    q: Vector


@dataclass
class MarginSearch:
    """The best model and the best multipliers so far."""

    question: MarginQuestion
    tol: float
    best: float = 0.0
    model: Model | None = None
    upper: float = np.inf
    q: Vector | None = None
    how: str = ""
    contradiction: FarkasCertificate | None = None
    late: Callable[[], bool] = lambda: False
    left: Callable[[], float | None] = lambda: None  # seconds; None without a limit
    any_margin: bool = False  # whether a positive margin is all that is asked for
    cancelled: float = field(default=np.inf, init=False)
    tried: bool = field(default=False, init=False)  # whether `separate` came to its end
    interrupted: bool = field(default=False, init=False)  # by Ctrl-C

    def offer(self, model: Model) -> bool:
        """Keep a model whose margin is the largest so far; whether it is."""
        margin, _ = self.question.margin(model, TUNING.rounding * self.tol)
        if not margin > self.best:
            return False
        self.best, self.model = margin, model
        return True

    def try_multipliers(self, q: Vector, how: str) -> bool:
        """Keep multipliers whose bound is the least so far; whether it is."""
        bound = self.question.exceeded_by_none(q)
        if not bound < self.upper:
            return False
        self.upper, self.q, self.how = bound, np.ravel(q), how
        return True

    @property
    def done(self) -> bool:
        """Whether the interval is narrow enough, or no model separates the data."""
        if self.any_margin and self.best > 0.0:
            return True
        narrow = self.upper < np.inf and self.upper - self.best <= self.tol * self.upper
        return self.contradiction is not None or narrow

    def try_contradiction(self) -> None:
        """A proof that no model separates the data, from the best multipliers, where they nearly cancel."""
        if self.best > 0.0 or self.q is None or self.contradiction is not None:
            return
        problem = hard_margin(self.question)
        bound = dual_bound(problem, Multipliers.of(problem, signed(self.question, self.q), self.how))
        hopeless = bound.cancellation > min(TUNING.contradiction, TUNING.again * self.cancelled)
        if bound.absolute.any() and hopeless:
            return
        self.cancelled = bound.cancellation
        self.contradiction = prove(problem, bound)

    def prove(self, q: Vector) -> None:
        """A proof that no model separates the data, if these multipliers are one."""
        problem = hard_margin(self.question)
        q = q / q.max()
        bound = dual_bound(problem, Multipliers.of(problem, signed(self.question, q), "contradiction"))
        self.contradiction = prove(problem, bound)

    def guess(self, model: Model) -> None:
        """Multipliers from the differences of a model: those of a soft minimum, and none but the least ones."""
        m = self.question.differences(model)[0].ravel()
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

    def run_or_interrupt(self, passes: int) -> None:
        """`run`; Ctrl-C ends it and keeps what is known by then."""
        try:
            self.run(passes)
        except KeyboardInterrupt:
            self.interrupted = True

    @np.errstate(all="ignore")  # what overflows or underflows proves nothing, and is nothing worse
    def run(self, passes: int) -> None:
        """Look for better models and multipliers."""
        if self.done or not passes or self.late():
            return
        if self.question.p in (1.0, np.inf) and fits(self.question):
            found = linear_program(self.question, self.left())
            if found is not None:
                self.offer(found[0])
                self.try_multipliers(found[1], "linear program")
                self.try_contradiction()
        if not self.done and not self.question.is_binary and self.question.p == 2.0:
            self._grow()
        if not self.done:
            _scaled_rounds(self, passes)
        if not (self.done or self.best > 0.0 or self.tried):
            self.separate()

    def _grow(self) -> None:
        """More than two classes: rows that matter, more and more of them."""
        rows, patience = WorkingSet.of(self.question, constant_of(self.question), self.tol), TUNING.patience
        for _ in range(TUNING.rounds):
            if not rows.fits or self.late():
                return
            model, q = rows.solve(self.late)
            better = self.offer(model)
            if self.try_multipliers(q, "dual ascent"):
                better = True
            self.try_contradiction()
            patience = TUNING.patience if better else patience - 1
            if self.done or not patience or not rows.extend():
                return

    def separate(self, basis: Basis | None = None) -> None:
        """A model that separates the samples, or a proof that there is none, by Newton steps on the squared hinge."""
        if self.late():
            return
        basis = basis_of(self.question) if basis is None else basis
        if basis is None:
            return
        question, self.tried = self.question, True
        A = question.y[:, None] * basis.Q if question.is_binary else basis.Q
        for found in separations(A):
            if found.u is not None:
                self.offer(_of_basis(question, basis.weights(found.u)))
                self.try_multipliers(basis.T * found.residual, "residuals of the squared hinge")
            if found.r is not None:
                self.try_multipliers(basis.T * found.r, "residuals of the squared hinge")
                self.prove(basis.T * found.r)
            if self.late():
                return


def constant_of(question: MarginQuestion) -> float:
    """The entry of the constant column for intercepts; 0 without."""
    return TUNING.constant * max(question.farthest_row, 1e-300) if question.intercept else 0.0


def basis_of(question: MarginQuestion) -> Basis | None:
    """Of the columns of the data, or of the rows of differences; None where it would be too large."""
    rows, columns = question.n_constraints, int(np.prod(question.shape)) + question.intercept * (question.k - 1)
    if not Basis.fits(rows, columns) or not (question.is_binary or question.may_form_rows):
        return None
    if question.is_binary:
        return Basis.of(question.design, question.intercept)
    return Basis.of(question.formed_rows(None, float(question.intercept)), intercept=False)


def _of_basis(question: MarginQuestion, w: Vector) -> Model:
    """The model of weights with intercepts among them."""
    if question.is_binary:
        return Model(w[:-1], w[-1:]) if question.intercept else Model(w, np.zeros(1))
    U = w.reshape(question.k, -1)
    return Model(U[:, :-1], U[:, -1]) if question.intercept else Model(U, np.zeros(question.k))


def signed(question: MarginQuestion, q: Vector) -> Vector:
    """q as multipliers of `hard_margin`, which have the signs of the classes."""
    return question.y * q if question.is_binary else np.ravel(q)


def hard_margin(question: MarginQuestion) -> Interpolation:
    """The hard-margin problem; for more than two classes the intercepts are weights of a constant column.

    Of features near 1: those of a very different scale are multiplied by a power of two, which is exact, and changes
    neither what is separable nor what is contradictory.
    """
    question = question.rescaled
    if question.is_binary:
        return Interpolation(question.design, HalfLine(1.0, question.y), L2(1.0), intercept=question.intercept)
    return Interpolation(question.pairs_with(float(question.intercept)), HalfLine(1.0), L2(1.0))


def _scaled_rounds(search: MarginSearch, passes: int) -> None:
    """One round for p = 2, else rounds of scaled columns."""
    question, p = search.question, search.question.p
    q, floor, scale = np.zeros(question.n_constraints), TUNING.floor, None
    for _ in range(1 if p == 2.0 else TUNING.rounds):
        last = None
        for offer in _solutions(search, scale, q, passes):
            last = offer
            if search.done or search.late():
                return
        if last is None or not (question.is_binary or question.may_form_rows):
            return
        q = last.q
        basis, exponent = last.model.w, 2.0 - p
        if p > 2.0:
            basis, exponent = question.combination(q), dual_exponent(p) - 2.0
        scale = _scale_of(basis, exponent, floor)
        if scale is None:
            return
        floor = max(TUNING.least, TUNING.falling * floor)


def _scale_of(basis: Vector, exponent: float, floor: float) -> Vector | None:
    """|basis_j|^(exponent / 2), with entries of the basis kept away from zero."""
    sizes = np.abs(basis)
    largest = float(sizes.max(initial=0.0))
    if not 0.0 < largest < np.inf:
        return None
    ratio = np.sqrt(np.square(sizes / largest) + floor**2)
    c = ratio ** (0.5 * exponent)
    return np.asarray(c / c.max())


def _solutions(search: MarginSearch, scale: Vector | None, q: Vector, passes: int) -> Iterator[Offer]:
    """The models and multipliers of the problem with p = 2 and scaled columns, each kept where it is better."""
    question = search.question
    if question.is_binary:
        design = question.design if scale is None else Design(times_columns(question.design.matrix, scale))
        problem = Interpolation(design, HalfLine(1.0, question.y), L2(1.0), intercept=question.intercept)
        yield from _offers(search, problem, scale, 0.0, q, passes)
        return
    constant = constant_of(question)
    rows: Products = question.pairs_with(constant) if scale is None else question.formed_rows(scale, constant)
    width = rows.shape[1] // question.k
    centre = np.zeros((question.k, width))
    for _ in range(TUNING.moves if question.intercept else 1):
        problem = Interpolation(rows, HalfLine(1.0), L2(1.0), centre=centre.ravel() if centre.any() else None)
        last = None
        for offer in _offers(search, problem, scale, constant, q, passes):
            last = offer
            yield offer
        if last is None or search.done or not question.intercept:
            return
        q, centre = last.q, np.zeros_like(centre)
        centre[:, -1] = last.model.b / constant


def _offers(
    search: MarginSearch, problem: Interpolation, scale: Vector | None, constant: float, q: Vector, passes: int
) -> Iterator[Offer]:
    """What the solvers that raise the dual of a problem offer, until neither end moves."""
    start = np.zeros(problem.shapes[0]), problem.first_intercept(), problem.in_domain(signed(search.question, q))
    for stated, method in dual_solvers(problem, may_copy=False):
        if search.late():
            return
        patience = TUNING.patience
        for candidate, used in offers(stated, method, *start, search.late):
            if candidate.alpha is None:
                continue
            q, model = np.abs(candidate.alpha), _restored(search.question, candidate, scale, constant)
            better = search.offer(model)
            if search.try_multipliers(q, "dual ascent"):
                better = True
            if scale is None:
                search.try_contradiction()
            yield Offer(model, q)
            patience = TUNING.patience if better else patience - 1
            if search.done or used >= passes or not patience or search.late():
                break


def _restored(question: MarginQuestion, candidate: Candidate, scale: Vector | None, constant: float) -> Model:
    """The model of the unscaled columns, with the intercepts apart."""
    w, b = np.asarray(candidate.w), np.atleast_1d(np.asarray(candidate.b, dtype=np.float64))
    if not question.is_binary:
        w, b = w.reshape(question.k, -1), np.zeros(question.k)
        if constant:
            w, b = w[:, :-1], constant * w[:, -1]
    return Model(np.ascontiguousarray(w if scale is None else w * scale), b)
