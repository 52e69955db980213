"""Which solver: tables, read from the top. The only place that chooses algorithms, for models and for dual bounds."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

from fenchel.data.design import Design
from fenchel.problem import Interpolation, KernelProblem, MulticlassProblem, Problem, Statement, Trait
from fenchel.problem.margin import KernelMargin, LargestMargin
from fenchel.problem.penalties import Penalty
from fenchel.steps import (
    APPROX,
    FISTA,
    PDHG,
    PGS,
    SDCA,
    SGD,
    ActiveSet,
    BatchPerceptron,
    BlockSDCA,
    DualGradient,
    DualNewton,
    Dykstra,
    EuclideanDescent,
    FreeMatrixNewton,
    FreeNewton,
    FreeProgram,
    GradientDescent,
    Growing,
    HardMargins,
    InteriorPoint,
    IntervalNewton,
    KernelAscent,
    KernelGrowing,
    KernelHardMargin,
    KernelPGS,
    LeastSquares,
    LinearProgram,
    Margin,
    MarginSampling,
    MatrixNewton,
    Mirror,
    NearestPoints,
    Newton,
    NonNegativeNewton,
    NormalizedGradient,
    Pegasos,
    Perceptron,
    PrimalCD,
    Solver,
    SparsePath,
    SquaredHinge,
    Sublinear,
    TotalVariation,
    Trend,
)

Kind = type[Solver[Any]]


@dataclass(frozen=True)
class Solvers:
    """The solvers for one kind of problem, the preferred ones first; and baselines, which are taken by name only.

    `dual` are groups of solvers that raise the dual bound for a given model.
    """

    kinds: tuple[Kind, ...]
    baselines: tuple[Kind, ...] = ()
    dual: tuple[tuple[Solver[Any], ...], ...] = ()

    def named(self) -> dict[str, Kind]:
        """All of them."""
        return {kind.name: kind for kind in self.kinds + self.baselines}

    def kind(self, name: str) -> Kind:
        """The one of this name."""
        known = self.named()
        if name not in known:
            raise ValueError(f"unknown solver {name!r}; there are 'auto', {', '.join(map(repr, known))}")
        return known[name]


@singledispatch
def solvers_of(problem: object) -> Solvers:
    """The solvers for a problem; each kind of statement registers its own."""
    raise TypeError(f"there are no solvers for {type(problem).__name__}; register them with solvers_of.register")


PROBLEM_SOLVERS = Solvers(
    (
        Newton,
        SparsePath,
        DualNewton,
        PrimalCD,
        SDCA,
        TotalVariation,
        Trend,
        InteriorPoint,
        NonNegativeNewton,
        LeastSquares,
        FreeNewton,
        FreeProgram,
        FISTA,
        PDHG,
        APPROX,
    ),
    (PGS, SGD, Pegasos),
    (
        (TotalVariation(),),
        (Trend(),),
        (LeastSquares(), FreeNewton(), FreeProgram()),
        (FISTA(),),
        (SDCA(shrink=False), PDHG()),
    ),
)


@solvers_of.register
def _(problem: Problem) -> Solvers:
    return PROBLEM_SOLVERS


@solvers_of.register
def _(problem: KernelProblem) -> Solvers:
    return Solvers((KernelAscent, KernelPGS), dual=((KernelAscent(),),))


@solvers_of.register
def _(problem: MulticlassProblem) -> Solvers:
    return Solvers((MatrixNewton, BlockSDCA, FreeMatrixNewton), dual=((BlockSDCA(),), (FreeMatrixNewton(),)))


@solvers_of.register
def _(problem: Interpolation) -> Solvers:
    return Solvers(
        (IntervalNewton, ActiveSet, DualGradient, Dykstra),
        (
            *(Mirror, EuclideanDescent, Perceptron),
            *(Margin, MarginSampling, GradientDescent, NormalizedGradient, BatchPerceptron, Sublinear),
        ),
        ((IntervalNewton(),), (DualGradient(),)),
    )


@solvers_of.register
def _(problem: LargestMargin) -> Solvers:
    return Solvers((NearestPoints, LinearProgram, Growing, HardMargins, SquaredHinge))


@solvers_of.register
def _(problem: KernelMargin) -> Solvers:
    return Solvers((KernelGrowing, NearestPoints, KernelHardMargin))


def choose(
    problem: Statement,
    solver: str | Solver[Any],
    options: dict[str, Any],
    tol: float,
    has_start: bool = False,
    is_path: bool = False,
) -> Solver[Any]:
    """The solver by name, or an instance as it is; raise if it cannot solve the problem."""
    require_solver(solver)
    if not isinstance(solver, str):
        if options:
            raise TypeError(f"{', '.join(options)}: options belong to the solver object that was passed")
        return _require_fit(problem, solver)
    if solver == "auto":
        return _best(problem, options, tol, has_start, is_path)
    return _require_fit(problem, _build(solvers_of(problem).kind(solver), options))


def require_solver(solver: object, among: Solvers | None = None) -> None:
    """Raise unless it is a solver or a name; the name of one of these, if some are given."""
    if not isinstance(solver, str | Solver):
        raise TypeError(f"solver must be a name or an object of a subclass of Solver; got {solver!r}")
    if among is not None and isinstance(solver, str) and solver != "auto":
        among.kind(solver)


def another(problem: Statement, tried: Sequence[Solver[Any]]) -> Solver[Any] | None:
    """A solver to try when those that "auto" chose have given up."""
    if tried[-1].is_final:
        return None
    kinds = {type(solver) for solver in tried}
    kind = next((kind for kind in _able(problem) if kind not in kinds and not kind().ignores_start), None)
    return None if kind is None else _build(kind, {})


def storage_for(solver: str | Solver[Any], design: Design, penalty: Penalty) -> Design:
    """X by rows, copied if need be, where the solver goes row by row: by "auto" those for strongly convex penalties."""
    kind = PROBLEM_SOLVERS.named().get(solver) if isinstance(solver, str) else solver
    as_it_is = Trait.STRONGLY_CONVEX_PENALTY not in penalty.traits or (kind is not None and kind.any_storage)
    return design if as_it_is else design.stored_by_rows()


def dual_solvers(problem: Statement, may_copy: bool) -> list[tuple[Statement, Solver[Any]]]:
    """Solvers that raise D, in this order, each with the problem stored as it needs it: of the first group that fits.

    Data stored by columns are copied for a solver that goes row by row only if `may_copy`.
    """
    for group in solvers_of(problem).dual:
        stored = [(_by_rows(problem, one) if may_copy else problem, one) for one in group]
        fitting = [(problem, one) for problem, one in stored if one.hindrance(problem) is None]
        if fitting:
            return fitting
    return []


def _by_rows(problem: Statement, solver: Solver[Any]) -> Statement:
    """The problem with X by rows, copied if need be, where the solver goes row by row."""
    as_it_is = solver.any_storage or not problem.is_stored or not solver.requires <= problem.traits
    return problem if as_it_is else problem.replace(X=problem.design.stored_by_rows())


def reasons(problem: Statement, tol: float, is_path: bool) -> tuple[str, dict[str, str]]:
    """The solver that "auto" takes; and for every solver, in the order of the table, why or why not."""
    taken, why = _best(problem, {}, tol, is_path=is_path).name, {}
    for kind in solvers_of(problem).kinds:
        hindrance = kind().hindrance(problem)
        if hindrance is not None:
            why[kind.name] = f"cannot: it {hindrance}"
        elif kind.name == taken:
            why[kind.name] = f"taken: {kind.summary}"
        elif _suits(kind, problem, tol, is_path):
            why[kind.name] = "would do, after the one that is taken"
        else:
            why[kind.name] = "could, but is expected to take longer here"
    return taken, why


def _best(
    problem: Statement, options: dict[str, Any], tol: float, has_start: bool = False, is_path: bool = False
) -> Solver[Any]:
    """The first that fits, knows the options, and suits the problem; whether it suits is not asked if no other does."""
    fitting, traits = [], problem.traits
    for kind in solvers_of(problem).kinds:
        if (
            not kind.requires <= traits
            or (options and set(options) - _options(kind))
            or kind().hindrance(problem) is not None
        ):
            continue
        # one that cannot use a start is taken only if nothing else would get further
        if has_start and kind(**options).ignores_start and not kind.is_final:
            continue
        if _suits(kind, problem, tol, is_path):
            return _build(kind, options)
        fitting.append(kind)
    if fitting:
        return _build(fitting[0], options)
    able = _able(problem)
    if not able:
        raise TypeError(f"no solver takes {problem.described}; with L2 or ElasticNet there is one")
    offers = "; ".join(f"{kind.name}: {', '.join(sorted(_options(kind))) or 'none'}" for kind in able)
    raise TypeError(f"no solver for this problem has the options {', '.join(map(repr, options))}; {offers}")


def _suits(kind: Kind, problem: Statement, tol: float, is_path: bool) -> bool:
    return kind.suits_path(problem, tol) if is_path else kind.suits(problem, tol)


def _able(problem: Statement) -> list[Kind]:
    """The solvers that can solve the problem, the preferred ones first."""
    return [kind for kind in solvers_of(problem).kinds if kind().hindrance(problem) is None]


def _options(kind: Kind) -> set[str]:
    return {field.name for field in dataclasses.fields(kind)}


def _build(kind: Kind, options: dict[str, Any]) -> Solver[Any]:
    name, known = kind.name, _options(kind)
    unknown = sorted(set(options) - known)
    if unknown:
        offers = f"its options are {', '.join(sorted(known))}" if known else "it has no options"
        raise TypeError(f"the solver {name!r} has no option {', '.join(map(repr, unknown))}; {offers}")
    return kind(**options)


def _require_fit(problem: Statement, solver: Solver[Any]) -> Solver[Any]:
    reason = solver.hindrance(problem)
    if reason is not None:
        able = ", ".join(repr(kind.name) for kind in _able(problem))
        instead = f"{able} would work" if able else f"no solver takes {problem.described}"
        raise TypeError(f"the solver {solver.name!r} {reason}; {instead}")
    return solver
