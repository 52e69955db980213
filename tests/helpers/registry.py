"""Instances of every loss and penalty; a test fails when an exported one is missing here."""

import numpy as np

from fenchel.problem import losses, penalties

CLASSIFICATION = [
    losses.Hinge(),
    losses.SmoothedHinge(0.5),
    losses.SmoothedHinge(1e-3),
    losses.SquaredHinge(),
    losses.Logistic(),
    losses.Exponential(),
]
REGRESSION = [
    losses.Squared(),
    losses.Absolute(),
    losses.Pinball(0.2),
    losses.EpsilonInsensitive(0.3),
    losses.SquaredEpsilonInsensitive(0.3),
    losses.Huber(0.7),
]
LOSSES = CLASSIFICATION + REGRESSION
#: What Newton steps on working sets are for.
SMOOTH = [losses.Squared(), losses.Logistic(), losses.SquaredHinge(), losses.SmoothedHinge(0.5), losses.Huber(0.7)]
MULTICLASS = [losses.Multinomial(), losses.CrammerSinger()]


def penalties_for(d, lam=0.1):
    """One of each penalty for d weights."""
    return [
        penalties.L2(lam),
        penalties.L1(lam),
        penalties.ElasticNet(lam, 0.6),
        penalties.LpSquared(lam, 1.3),
        penalties.LpSquared(lam, 1.5, radius=0.4),
        penalties.GroupL2(lam, np.arange(d) // 2, weights=1.0 + np.arange((d + 1) // 2) / 4),
        penalties.SparseGroup(lam, np.arange(d) // 3, 0.4, weights=1.0 + np.arange((d + 2) // 3) / 4),
        penalties.FusedL1(lam),
        penalties.FusedL1(lam, D=second_difference(d)),
        penalties.Entropy(lam),
        penalties.SignedEntropy(lam, radius=1.7),
        penalties.NonNegativeL1(lam),
        penalties.NonNegativeElasticNet(lam, 0.6),
        penalties.NonNegativeElasticNet(lam),
        penalties.NoPenalty(),
    ]


def second_difference(d):
    """Trend filtering's operator; the identity where there is nothing to difference."""
    return np.diff(np.eye(d), 2, axis=0) if d > 2 else np.eye(d)


def targets(loss, rng, n):
    """Random targets of the kind that a loss takes, both labels present."""
    if loss.is_classification:
        y = np.where(rng.random(n) < 0.5, -1.0, 1.0)
        y[:2] = -1.0, 1.0
        return y
    return rng.normal(size=n)


def name(thing):
    return repr(thing).replace(" ", "")[:40]
