"""Properties of losses and penalties that solvers require."""

from enum import StrEnum


class Trait(StrEnum):
    """A property that losses and penalties declare and solvers require; the value is its name in messages."""

    DIFFERENTIABLE_LOSS = "a differentiable loss"
    SMOOTH_LOSS = "a loss with a Lipschitz derivative"
    LIPSCHITZ_LOSS = "a Lipschitz loss"
    STRAIGHT_LOSS = "a piecewise linear loss (Hinge, Absolute, Pinball, EpsilonInsensitive)"
    PROX_PENALTY = "a penalty with a proximal map"
    SEPARABLE_PENALTY = "a penalty that is a sum over coordinates"
    STRONGLY_CONVEX_PENALTY = "a strongly convex penalty"
    COMPILED_LOSS = "a loss with a compiled kernel"
    COMPILED_LINK = "a penalty with a compiled link (L2, ElasticNet, LpSquared, SignedEntropy)"
    BLOCK_PENALTY = "a penalty that acts on single weights or on disjoint groups (L1, ElasticNet, GroupL2)"
    STRAIGHT_PENALTY = "a piecewise linear penalty (L1, NonNegativeL1, FusedL1)"
    QUADRATIC_PENALTY = "a quadratic penalty (L2)"
    NO_PENALTY = "a problem without a penalty (NoPenalty)"
    NONNEGATIVE_PENALTY = "a penalty for weights that are not negative (NonNegativeL1, NonNegativeElasticNet)"
    NORM_PENALTY = "a penalty that is a norm or seminorm"
    LINK_DERIVATIVE = "a penalty whose link has a derivative (L2, ElasticNet, LpSquared, the entropies)"
    INTERVALS = "sets that are intervals or boxes"
