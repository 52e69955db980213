"""What follows from a certificate holds for the optimum that another solver finds."""

import numpy as np
import pytest

import fenchel as fl
from tests.matrix.statements import CASES, SHAPES, STORAGES, Statement, case_id, data, storages_of

#: How far the oracle's weights and scores may be from the exact ones.
ACCURACY = 1e-3
SPARSE = (fl.penalties.L1, fl.penalties.ElasticNet, fl.penalties.GroupL2, fl.penalties.SparseGroup)
SMOOTH = {
    fl.losses.Squared: lambda z, y: y - z,
    fl.losses.Huber: lambda z, y: np.clip(y - z, -0.7, 0.7),
    fl.losses.SquaredEpsilonInsensitive: lambda z, y: 2.0 * np.sign(y - z) * np.maximum(0.0, np.abs(y - z) - 0.1),
    fl.losses.SquaredHinge: lambda z, y: 2.0 * y * np.maximum(0.0, 1.0 - y * z),
    fl.losses.SmoothedHinge: lambda z, y: y * np.clip(2.0 * (1.0 - y * z), 0.0, 1.0),
    fl.losses.Logistic: lambda z, y: y / (1.0 + np.exp(y * z)),
    fl.losses.Exponential: lambda z, y: y * np.exp(-y * z),
}


def solved(case, storage, tol=1e-9):
    statement, variant = case
    return fl.solve(statement.problem(variant, storage), tol=tol, warn=False).certificate


@pytest.mark.parametrize("case", [c for c in CASES if c[0].kind in SPARSE], ids=case_id)
def test_proven_zeros_are_zero(case):
    statement, variant = case
    w = statement.optimum(variant)[0]
    for storage in storages_of(case):
        zeros = solved(case, storage).zeros()
        assert zeros.shape == w.shape
        assert zeros.dtype == bool
        assert np.all(np.abs(w[zeros]) <= ACCURACY)


@pytest.mark.parametrize("case", [c for c in CASES if c[0].kind is fl.penalties.FusedL1], ids=case_id)
def test_proven_differences_are_zero(case):
    statement, variant = case
    w = statement.optimum(variant)[0]
    for storage in storages_of(case):
        zeros = solved(case, storage).zeros()
        assert zeros.shape == (len(w) - 1,)
        assert np.all(np.abs(np.diff(w))[zeros] <= ACCURACY)


@pytest.mark.parametrize("case", [c for c in CASES if c[0].is_classification], ids=case_id)
def test_proven_labels_are_those_of_the_optimum(case):
    statement, variant = case
    w, b, _ = statement.optimum(variant)
    X = data(variant)[0]
    scores = X @ w + b
    for storage in storages_of(case):
        labels, proven = solved(case, storage).labels(STORAGES[storage](X))
        assert labels.shape == proven.shape == scores.shape
        assert set(labels) <= {-1, 1}
        certain = proven & (np.abs(scores) > ACCURACY)
        assert np.array_equal(labels[certain], np.sign(scores[certain]))


@pytest.mark.parametrize("case", [c for c in CASES if type(c[0].loss) in SMOOTH], ids=case_id)
def test_intervals_contain_the_optimal_multipliers(case):
    statement, variant = case
    w, b, _ = statement.optimum(variant)
    X, _, _, s = data(variant)
    alpha = SMOOTH[type(statement.loss)](X @ w + b, statement.targets(variant))
    counted = s > 0
    for storage in storages_of(case):
        certificate = solved(case, storage)
        low, high = certificate.multipliers()
        assert low.shape == high.shape == alpha.shape
        assert np.all(low <= high)
        assert np.all((low - ACCURACY <= alpha)[counted])
        assert np.all((alpha <= high + ACCURACY)[counted])
        outside, inside = certificate.support_vectors()
        assert not np.any(outside & inside)
        assert np.all(np.abs(alpha[outside & counted]) <= ACCURACY)
        assert np.all(np.abs(alpha[inside & counted]) > 0.0)


@pytest.mark.parametrize("case", CASES, ids=case_id)
def test_no_construction_proves_too_much(case):
    statement, variant = case
    best = statement.optimum(variant)[2]
    for storage in storages_of(case):
        certificate = solved(case, storage, tol=1e-4)
        objective, found = certificate.primal, certificate.constructions()
        for construction in found.values():
            assert construction.dual <= best + 1e-9 * (1.0 + abs(best))
            assert construction.gap >= objective - best - 1e-9 * (1.0 + abs(best))


@pytest.mark.parametrize("shape", SHAPES)
def test_consequences_say_something(shape):
    """The tests above would pass if nothing were proven."""
    variant = next(c[1] for c in CASES if c[1].shape == shape)
    lasso = Statement(fl.losses.Squared(), fl.penalties.L1, lam=100.0)
    ridge = Statement(fl.losses.Squared(), fl.penalties.L2)
    for storage in STORAGES:
        assert solved((lasso, variant), storage).zeros().all()
        low, high = solved((ridge, variant), storage).multipliers()
        assert np.all(high - low <= 1e-2)
