"""Penalties: convex functions R(w) of the weights."""

from fenchel.problem.penalties.base import Penalty, Subgradients
from fenchel.problem.penalties.fused.fused import FusedL1
from fenchel.problem.penalties.groups import GroupL2, SparseGroup
from fenchel.problem.penalties.l1 import L1, NonNegativeElasticNet, NonNegativeL1, NoPenalty
from fenchel.problem.penalties.lp import LpSquared
from fenchel.problem.penalties.signed_entropy import SignedEntropy
from fenchel.problem.penalties.strongly_convex import L2, ElasticNet, Entropy

__all__ = [
    "L1",
    "L2",
    "ElasticNet",
    "Entropy",
    "FusedL1",
    "GroupL2",
    "LpSquared",
    "NoPenalty",
    "NonNegativeElasticNet",
    "NonNegativeL1",
    "Penalty",
    "SignedEntropy",
    "SparseGroup",
    "Subgradients",
]
