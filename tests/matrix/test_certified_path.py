"""certified_path on every shape and storage: at every lam a model is proven as good as it is said to be."""

import pytest

import fenchel as fl
from tests.matrix.statements import CASES, SUMS, case_id, for_every_storage

LAMS, EPS = (0.5, 0.2, 0.1), 0.1
#: An optimum below this is zero, or negative, which an entropy may be: no gap is relative to it.
ZERO = 1e-9
#: First-order steps for squared p-norms take long; tests/solver has a path of theirs.
SHORT = [case for case in CASES if case[0].kind not in (fl.penalties.LpSquared, fl.penalties.NoPenalty)]


@pytest.mark.parametrize("case", SHORT, ids=case_id)
@for_every_storage
def test_certified_path(case, storage):
    statement, variant = case
    problem = statement.problem(variant, storage)
    if statement.optimum(variant, max(LAMS))[2] <= ZERO:
        with pytest.warns(fl.NotCertifiedWarning, match="proven for no lam"):
            assert not fl.certified_path(problem, min(LAMS), max(LAMS), eps=EPS).complete
        return
    found = fl.certified_path(problem, min(LAMS), max(LAMS), eps=EPS)
    assert found.complete
    for lam in LAMS:
        knot, gap = found.at(lam)
        objective, best = statement.objective(variant, knot.w, knot.b, lam), statement.optimum(variant, lam)[2]
        slack = SUMS * (1.0 + abs(objective))
        assert gap >= objective - best - slack
        assert gap <= EPS * knot.objective(lam) + slack
        assert knot.objective(lam) >= objective - slack
    for knot in found:
        objective = statement.objective(variant, knot.w, knot.b, knot.lam)
        assert knot.certificate.primal == pytest.approx(objective, rel=1e-9, abs=SUMS)
