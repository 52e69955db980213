"""The order in which coordinate ascent visits the samples, and which of them it leaves out."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from fenchel.data.typing import Vector
from fenchel.problem import Problem

SAMPLINGS = ("permutation", "uniform", "cyclic", "importance")
#: The share of importance sampling that is uniform, so that rows of zeros are visited, too.
UNIFORM_SHARE = 0.1
#: Fewer blocks than this are no random order.
FEWEST_BLOCKS = 64


@dataclass
class Sampler:
    """Orders for one epoch after another.

    "permutation" visits every sample once, in a new random order of blocks of consecutive samples (of one sample, if
    `block` is 1); "cyclic" in the order of the data; "uniform" and "importance" draw with replacement. Samples can be
    left out: for good, once their multipliers are proven (`settle`), or until the next `restore` (the kernel compacts
    `order` in place, and `keep` says how many are left).
    """

    sampling: str
    rng: np.random.Generator
    pool: NDArray[np.int64]  # samples whose multipliers are not proven
    order: NDArray[np.int64] = field(init=False)
    active: int = field(init=False)
    proven: int = 0
    probability: Vector | None = None
    block: int = 1

    def __post_init__(self) -> None:
        self.restore()

    @classmethod
    def of(cls, problem: Problem, sampling: str, seed: int, pull: Vector, block: int = 1) -> Sampler:
        """For a problem whose q_i = s_i |x_i|^2 / (mu W) are `pull`.

        Importance (Zhao and Zhang 2015): proportional to gamma + q_i for a (1/gamma)-smooth loss, to sqrt(s_i q_i) for
        one that is only Lipschitz.
        """
        pool = np.flatnonzero(problem.weights > 0).astype(np.int64)
        sampler = cls(sampling, np.random.default_rng(seed), pool, block=block)
        if sampling == "importance":
            smoothness = problem.loss.smoothness
            p = 1.0 / smoothness + pull if np.isfinite(smoothness) else np.sqrt(problem.weights * pull)
            p = p / p.sum() if p.sum() > 0 else np.full_like(p, 1.0 / len(p))
            sampler.probability = (1.0 - UNIFORM_SHARE) * p + UNIFORM_SHARE / len(p)
        return sampler

    @property
    def visits_once(self) -> bool:
        """Whether no sample comes twice in an epoch."""
        return self.sampling in ("permutation", "cyclic")

    @property
    def shrinks(self) -> bool:
        """Whether samples may be left out for a while."""
        return self.visits_once

    @property
    def whole(self) -> bool:
        """Whether the next epoch leaves out proven samples only."""
        return self.active == len(self.pool)

    def next(self) -> NDArray[np.int64]:
        """The order of the next epoch; the kernel may compact it in place."""
        if self.sampling == "permutation":
            self.order = self._shuffled(self.order[: self.active])
            return self.order
        if self.sampling == "cyclic":
            return self.order[: self.active]
        size = len(self.pool)
        if size == 0:
            return self.pool.copy()
        if self.probability is None:
            return self.pool[self.rng.integers(size, size=size)]
        edges = np.cumsum(self.probability[self.pool])
        return np.asarray(self.pool[np.minimum(np.searchsorted(edges, edges[-1] * self.rng.random(size)), size - 1)])

    def _shuffled(self, order: NDArray[np.int64]) -> NDArray[np.int64]:
        """The blocks of an order in a new order; single samples where blocks would be few.

        What is left of the blocks after samples were left out stays together.
        """
        block = self.block if len(order) >= FEWEST_BLOCKS * self.block else 1
        whole = len(order) // block * block
        blocks = order[:whole].reshape(-1, block)
        rest = order[whole:]
        shuffled = blocks[self.rng.permutation(len(blocks))].ravel()
        return np.concatenate([shuffled, rest]) if len(rest) else shuffled

    def keep(self, count: int) -> None:
        """The kernel kept the first `count` of the order."""
        self.active = count

    def restore(self) -> None:
        """Take everything back in but what is proven."""
        self.order, self.active = self.pool.copy(), len(self.pool)

    def settle(self, proven: NDArray[np.bool_]) -> None:
        """Leave out samples for good."""
        self.proven += int(np.count_nonzero(proven[self.pool]))
        self.pool = self.pool[~proven[self.pool]]
        self.restore()
