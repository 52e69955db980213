"""The order in which coordinate ascent visits the samples, and shrinking."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from fenchel.data.typing import Vector
from fenchel.problem import Problem


@dataclass
class Sampler:
    """The order of the samples in each epoch.

    "permutation" visits every sample once, in a new random order of blocks of consecutive samples; "cyclic" in the
    order of the data; "uniform" and "importance" draw with replacement. Samples are left out for good once their
    multipliers are proven (`settle`), or until `restore` (the kernel compacts `order`; `keep` records its new length).
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
    def of(cls, problem: Problem, sampling: str, seed: int, q: Vector, block: int = 1) -> Sampler:
        """For a problem with q_i = s_i |x_i|^2 / (mu W).

        Importance (Zhao and Zhang 2015): p_i proportional to gamma + q_i for a (1/gamma)-smooth loss, to sqrt(s_i q_i)
        for a Lipschitz loss.
        """
        pool = np.flatnonzero(problem.weights > 0).astype(np.int64)
        sampler = cls(sampling, np.random.default_rng(seed), pool, block=block)
        if sampling == "importance":
            smoothness = problem.loss.smoothness
            p = 1.0 / smoothness + q if np.isfinite(smoothness) else np.sqrt(problem.weights * q)
            sampler.draw_like(p)
        return sampler

    def draw_like(self, p: Vector) -> None:
        """Draw samples in proportion to p; a tenth of them uniformly, so that rows of zeros are visited as well."""
        p = p / p.sum() if p.sum() > 0 else np.full_like(p, 1.0 / len(p))
        uniform = 0.1
        self.probability = (1.0 - uniform) * p + uniform / len(p)

    @property
    def visits_once(self) -> bool:
        """Whether every sample is visited at most once per epoch."""
        return self.sampling in ("permutation", "cyclic")

    @property
    def whole(self) -> bool:
        """Whether the next epoch visits all samples but the proven ones."""
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
        """A random permutation of blocks of the order; of single samples if there are fewer than 64 blocks."""
        block = self.block if len(order) >= 64 * self.block else 1
        end = len(order) // block * block
        blocks = order[:end].reshape(-1, block)
        rest = order[end:]
        shuffled = blocks[self.rng.permutation(len(blocks))].ravel()
        return np.concatenate([shuffled, rest]) if len(rest) else shuffled

    def keep(self, count: int) -> None:
        """Record that the kernel kept the first `count` samples of the order."""
        self.active = count

    def restore(self) -> None:
        """Visit all samples again, but the proven ones."""
        self.order, self.active = self.pool.copy(), len(self.pool)

    def settle(self, proven: NDArray[np.bool_]) -> None:
        """Leave out samples for good whose multipliers are proven."""
        self.proven += int(np.count_nonzero(proven[self.pool]))
        self.pool = self.pool[~proven[self.pool]]
        self.restore()
