"""What paths on the folds of one search share: quantities of X that each would compute again."""

from __future__ import annotations

from typing import Any

import numpy as np

from fenchel.data.design import Design
from fenchel.data.fold_cache import FoldCache
from fenchel.problem import Problem, Statement
from fenchel.solver.blas import blas_threads
from fenchel.solver.solve import Request
from fenchel.steps import Overflow, PrimalCD, SparsePath, Start
from fenchel.steps.choose import choose
from fenchel.steps.working_set.moments import gram_for_folds
from fenchel.steps.working_set.primal_cd import is_cheap


@np.errstate(all="ignore")
def shared_design(problem: Statement, **options: Any) -> Design | None:
    """X for paths on some of these samples, all others with weight zero, where that is quicker than copies of them.

    It holds the columns in sixteen bits, for the compiled path; or, of least squares with few weights, the Gram matrix,
    from which folds take off what the samples left out have in it. None where nothing is worth sharing.
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
