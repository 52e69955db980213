"""Losses: convex functions phi(z; y) of a score z and a target y."""

from fenchel.problem.losses.base import Loss
from fenchel.problem.losses.classification import Exponential, Hinge, Logistic, SmoothedHinge, SquaredHinge
from fenchel.problem.losses.multiclass import CrammerSinger, MulticlassLoss, Multinomial
from fenchel.problem.losses.regression import (
    Absolute,
    EpsilonInsensitive,
    Huber,
    Pinball,
    Squared,
    SquaredEpsilonInsensitive,
)

__all__ = [
    "Absolute",
    "CrammerSinger",
    "EpsilonInsensitive",
    "Exponential",
    "Hinge",
    "Huber",
    "Logistic",
    "Loss",
    "MulticlassLoss",
    "Multinomial",
    "Pinball",
    "SmoothedHinge",
    "Squared",
    "SquaredEpsilonInsensitive",
    "SquaredHinge",
]
