"""Table 1 of the certificates paper: every row is solved in its form, certified, and agrees with the conic solver."""

from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp

import fenchel as fl
from tests.helpers.conic import reliable_optimum
from tests.helpers.registry import name, targets

D = 8


class Row(NamedTuple):
    """A row of the table: (A) is worked on over weights, (B) over samples; the SVM's (A) is over samples."""

    regulariser: str
    form: str
    penalty: fl.penalties.Penalty
    solver: str
    options: dict

    def __str__(self):
        return f"{self.regulariser}-{self.form}-{self.solver}"


OVER_WEIGHTS, OVER_SAMPLES = {"over": "weights"}, {"over": "samples"}
ELASTIC_NET, RIDGE, LASSO = fl.penalties.ElasticNet(0.06, 0.6), fl.penalties.L2(0.05), fl.penalties.L1(0.04)
GROUPS = fl.penalties.GroupL2(0.05, np.arange(D) // 2, weights=np.array([1.0, 0.5, 2.0, 1.5]))
TABLE = [
    Row("L1", "A", LASSO, "approx", OVER_WEIGHTS),
    Row("L1", "A", LASSO, "fista", {}),
    Row("elastic net", "A", ELASTIC_NET, "approx", OVER_WEIGHTS),
    Row("elastic net", "B", ELASTIC_NET, "approx", OVER_SAMPLES),
    Row("elastic net", "B", ELASTIC_NET, "sdca", {}),
    Row("L2", "A", RIDGE, "approx", OVER_WEIGHTS),
    Row("L2", "B", RIDGE, "approx", OVER_SAMPLES),
    Row("L2", "B", RIDGE, "sdca", {}),
    Row("fused Lasso", "A", fl.penalties.FusedL1(0.05), "pdhg", {}),
    Row("group Lasso", "A", GROUPS, "approx", OVER_WEIGHTS),
]
SVM = [Row("SVM", "A", RIDGE, "approx", OVER_SAMPLES), Row("SVM", "A", RIDGE, "sdca", {"sampling": "uniform"})]


def check(row, loss, seed):
    rng = np.random.default_rng([seed, (TABLE + SVM).index(row)])
    n = 40
    X = rng.normal(size=(n, D)) * np.exp(0.5 * rng.normal(size=D))
    X[rng.random(X.shape) < 0.3] = 0.0
    storage = [sp.csr_array, np.ascontiguousarray][seed]
    problem = fl.Problem(storage(X), targets(loss, rng, n), loss, row.penalty, sample_weight=0.5 + rng.random(n))
    c = fl.solve(problem, solver=row.solver, tol=1e-7, **row.options).certificate
    best = problem.primal(*reliable_optimum(problem))  # no less than the optimum, and at most 1e-6 above it
    assert c.ok
    assert c.primal - best <= c.gap
    assert c.primal - c.gap <= best
    assert abs(c.primal - best) <= 2e-6 * abs(best)
    for construction in c.constructions().values():
        assert construction.dual <= best * (1.0 + 1e-12)
        assert construction.gap >= c.primal - best


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("loss", [fl.losses.Logistic(), fl.losses.Squared()], ids=name)
@pytest.mark.parametrize("row", TABLE, ids=str)
def test_a_row_with_a_smooth_loss(row, loss, seed):
    check(row, loss, seed)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("row", SVM, ids=str)
def test_the_row_of_the_support_vector_machine(row, seed):
    check(row, fl.losses.Hinge(), seed)
