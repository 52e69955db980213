"""solve and certify on every shape and storage, judged by objectives and optima that share no code with them."""

import numpy as np
import pytest

import fenchel as fl
from tests.matrix.statements import (
    MULTICLASS,
    STATEMENTS,
    MulticlassStatement,
    case_id,
    cases,
    check_certificate,
    for_every_storage,
)

TOL = 1e-6
CASES = cases(STATEMENTS + MULTICLASS)
#: Certified, but not solved: no solver takes a norm of the weights of several classes.
NORMS = (fl.penalties.L1, fl.penalties.GroupL2)
CERTIFIED = cases([MulticlassStatement(fl.losses.Multinomial(), kind) for kind in NORMS])


def size(statement, variant):
    """The objective of a model that knows nothing."""
    w, b = statement.nothing(variant)
    return statement.objective(variant, w + 1.0 / w.shape[-1], b)


@pytest.mark.parametrize("case", CASES, ids=case_id)
@for_every_storage
def test_solve(case, storage):
    statement, variant = case
    result = fl.solve(statement.problem(variant, storage), tol=TOL)
    best = statement.optimum(variant)[2]
    objective = statement.objective(variant, result.w, result.b)
    check_certificate(result.certificate, objective, best, TOL, size(statement, variant))
    assert result.status == "certified"
    assert variant.intercept or not np.any(result.b)


@pytest.mark.parametrize("case", CASES + CERTIFIED, ids=case_id)
@for_every_storage
def test_certify(case, storage):
    """Of the optimum of another solver, of what it is after rounding, and of a model that knows nothing."""
    statement, variant = case
    w, b, best = statement.optimum(variant)
    problem = statement.problem(variant, storage)
    for factor, effort in ((1.0, "auto"), (0.9, "low"), (0.0, "low")):
        if statement.kind is fl.penalties.Entropy and factor != 1.0:
            continue  # its weights have a sum of one
        objective = statement.objective(variant, factor * w, factor * b)
        certificate = fl.certify(problem, factor * w, factor * b, effort=effort)
        check_certificate(certificate, objective, best, None, size(statement, variant))
        if factor == 1.0:
            assert certificate.gap <= 1e-3 * size(statement, variant)
