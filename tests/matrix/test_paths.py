"""path on every shape and storage: every model is proven as good as it is said to be."""

import numpy as np
import pytest

import fenchel as fl
from tests.matrix.statements import CASES, case_id, check_certificate, for_every_storage

TOL = 1e-4
LAMS = (0.5, 0.1)


@pytest.mark.parametrize("case", [c for c in CASES if c[0].kind is not fl.penalties.NoPenalty], ids=case_id)
@for_every_storage
def test_path(case, storage):
    statement, variant = case
    found = fl.path(statement.problem(variant, storage), lams=LAMS, tol=TOL)
    assert len(found) == len(LAMS)
    for lam, result in zip(LAMS, found, strict=True):
        objective = statement.objective(variant, result.w, result.b, lam)
        check_certificate(result.certificate, objective, statement.optimum(variant, lam)[2], TOL)


@pytest.mark.parametrize(
    "case", [c for c in CASES if c[0].kind is fl.penalties.L1 and c[1].shape != "n=1"], ids=case_id
)
def test_a_grid_of_its_own_begins_at_zero(case):
    statement, variant = case
    problem = statement.problem(variant)
    first, lam = fl.path(problem, n_lams=3, tol=TOL)[0], problem.lam_max()
    # the best intercept of a loss with kinks is at one of them; other weights may be as good there
    intercepts = (first.b, *(statement.targets(variant) if variant.intercept else ()))
    nothing = min(statement.objective(variant, np.zeros_like(first.w), b, lam) for b in intercepts)
    check_certificate(first.certificate, statement.objective(variant, first.w, first.b, lam), nothing, TOL)
    assert nothing <= first.certificate.primal * (1.0 + 1e-12)
    assert type(statement.loss) is fl.losses.Absolute or not np.any(first.w)
