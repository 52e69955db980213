"""certified_path on every shape and storage: at every lam a model is proven as good as it is said to be."""

import pytest

import fenchel as fl
from tests.matrix.statements import SUMS, by_storage
from tests.matrix.test_paths import CASES, LAMS

EPS = 1e-2


@pytest.mark.parametrize(("case", "storage"), by_storage(CASES))
def test_certified_path(case, storage):
    statement, variant = case
    problem = statement.problem(variant, storage)
    if max(statement.optimum(variant, lam)[2] for lam in LAMS) <= SUMS:  # an optimum of zero has no relative gap
        with pytest.warns(fl.NotCertifiedWarning, match="proven for no lam"):
            assert not fl.certified_path(problem, min(LAMS), max(LAMS), eps=EPS).complete
        return
    found = fl.certified_path(problem, min(LAMS), max(LAMS), eps=EPS)
    assert found.complete
    for lam in (*LAMS, 0.2):
        knot, gap = found.at(lam)
        objective, best = statement.objective(variant, knot.w, knot.b, lam), statement.optimum(variant, lam)[2]
        slack = SUMS * (1.0 + abs(objective))
        assert gap >= objective - best - slack
        assert gap <= EPS * knot.objective(lam) + slack
        assert knot.objective(lam) >= objective - slack
    for knot in found:
        objective = statement.objective(variant, knot.w, knot.b, knot.lam)
        assert knot.certificate.primal == pytest.approx(objective, rel=1e-9, abs=SUMS)
