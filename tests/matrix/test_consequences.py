"""What follows from a certificate holds for the optimum that another solver finds."""

import numpy as np
import pytest

import fenchel as fl
from tests.matrix.statements import (
    CASES,
    MULTICLASS,
    SHAPES,
    STORAGES,
    MulticlassStatement,
    Statement,
    Variant,
    case_id,
    cases,
    data,
    for_every_storage,
)

#: How far the oracle's weights and scores may be from the exact ones.
ACCURACY = 1e-3
SPARSE = (
    fl.penalties.L1,
    fl.penalties.ElasticNet,
    fl.penalties.GroupL2,
    fl.penalties.SparseGroup,
    fl.penalties.FusedL1,
)
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


@pytest.mark.parametrize("case", CASES + cases(MULTICLASS), ids=case_id)
@for_every_storage
def test_what_is_proven_holds_for_the_optimum(case, storage):
    statement, _ = case
    certificate = solved(case, storage, tol=1e-6)
    if statement.kind in SPARSE:
        check_zeros(case, certificate)
    if statement.is_classification:
        check_labels(case, certificate, storage)
    if type(statement.loss) in SMOOTH:
        check_multipliers(case, certificate)
    if not isinstance(statement, MulticlassStatement):
        check_constructions(case, certificate)


def check_zeros(case, certificate):
    """Weights that are proven zero are zero; with a fused penalty their differences."""
    statement, variant = case
    w = statement.optimum(variant)[0]
    w = np.diff(w) if statement.kind is fl.penalties.FusedL1 else w
    zeros = certificate.zeros()
    assert zeros.shape == w.shape
    assert zeros.dtype == bool
    assert np.all(np.abs(w[zeros]) <= ACCURACY)


def check_labels(case, certificate, storage):
    """Labels that are proven are those of the optimum."""
    statement, variant = case
    w, b, _ = statement.optimum(variant)
    right, lead = statement.winners(statement.scores(variant, w, b))
    labels, proven = certificate.labels(STORAGES[storage](data(variant)[0]))
    assert labels.shape == proven.shape == right.shape
    assert set(labels) <= set(statement.labels)
    certain = proven & (lead > ACCURACY)
    assert np.array_equal(labels[certain], right[certain])


def check_multipliers(case, certificate):
    """Intervals contain the optimal multipliers, and support vectors are what they are proven to be."""
    statement, variant = case
    w, b, _ = statement.optimum(variant)
    alpha = SMOOTH[type(statement.loss)](statement.scores(variant, w, b), statement.targets(variant))
    low, high = certificate.multipliers()
    assert low.shape == high.shape == alpha.shape
    assert np.all(low <= high)
    counted = data(variant)[3] > 0
    assert np.all((low - ACCURACY <= alpha)[counted])
    assert np.all((alpha <= high + ACCURACY)[counted])
    outside, inside = certificate.support_vectors()
    assert not np.any(outside & inside)
    assert np.all(np.abs(alpha[outside & counted]) <= ACCURACY)
    assert np.all(np.abs(alpha[inside & counted]) > 0.0)


def check_constructions(case, certificate):
    """No construction of a dual point proves too much."""
    statement, variant = case
    best, objective = statement.optimum(variant)[2], certificate.primal
    for construction in certificate.constructions().values():
        assert construction.dual <= best + 1e-9 * (1.0 + abs(best))
        assert construction.gap >= objective - best - 1e-9 * (1.0 + abs(best))


@pytest.mark.parametrize("shape", SHAPES)
@for_every_storage
def test_consequences_say_something(shape, storage):
    """The tests above would pass if nothing were proven."""
    variant = Variant(shape, intercept=False, weighted=False)
    for statement in (
        Statement(fl.losses.Squared(), fl.penalties.L1, lam=100.0),
        MulticlassStatement(fl.losses.Multinomial(), fl.penalties.ElasticNet, lam=100.0),
    ):
        assert solved((statement, variant), storage).zeros().all()
    low, high = solved((Statement(fl.losses.Squared(), fl.penalties.L2), variant), storage).multipliers()
    assert np.all(high - low <= 1e-2)
    X = data(variant)[0]
    for statement in (
        Statement(fl.losses.Logistic(), fl.penalties.L2),
        MulticlassStatement(fl.losses.Multinomial(), fl.penalties.L2),
    ):
        if statement.fits(variant):  # a row without entries has equal scores
            assert np.all(solved((statement, variant), storage).labels(STORAGES[storage](X))[1] == X.any(axis=1))
