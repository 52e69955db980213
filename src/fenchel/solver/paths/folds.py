"""Quantities of X that the folds of one search share."""

from __future__ import annotations

from typing import Any

import numpy as np

from fenchel.data.design import Design, FoldCache
from fenchel.problem import Problem, Statement
from fenchel.solver.blas import blas_threads
from fenchel.solver.solve import Request
from fenchel.steps import Overflow, PrimalCD, SparsePath, Start
from fenchel.steps.choose import choose
from fenchel.steps.working_set.moments import gram_for_folds
from fenchel.steps.working_set.primal_cd import is_cheap


@np.errstate(all="ignore")
def shared_design(problem: Statement, **options: Any) -> Design | None:
    """X for paths on folds given by sample weights of zero, if that is faster than copies of the folds; else None.

    Its cache has the columns in 16 bits, for the compiled path; or, for least squares with few weights, the Gram
    matrix, from which each fold subtracts the terms of the samples left out.
    """
    request = Request.of(**options)
    solver = choose(problem, request.solver, request.options, request.tol, is_path=True)
    if not (isinstance(problem, Problem) and problem.is_stored) or not isinstance(solver, PrimalCD | SparsePath):
        return None
    cache, design = FoldCache(), problem.design
    design = design.using(request.n_threads)
    with blas_threads(design.threads):
        if isinstance(solver, SparsePath):
            design = design.sharing(cache)
            n, d = problem.shape
            try:  # its screen fills the cache
                solver.begin(problem.replace(X=design), Start(np.zeros(d), 0.0, np.zeros(n)), seed=0)
            except Overflow:
                return None
        elif is_cheap(problem) and problem.loss.quadratic and problem.weightless:
            design = (design.stored_by_rows() if design.is_sparse else design).sharing(cache)
            cache.gram = gram_for_folds(problem.replace(X=design))
    return design if cache.screens or cache.gram else None
