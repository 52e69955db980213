"""Samples that need no step wait, those that move do not, and all return."""

import numpy as np
import pytest

from fenchel.steps.dual_ascent.sampling import Sampler
from fenchel.steps.dual_ascent.waiting import Waiting


def waiting(n=6, sampling="permutation"):
    return Waiting(Sampler(sampling, np.random.default_rng(0), np.arange(n)), n)


def play(queue, rounds, moving):
    """Who is visited in each round, if these samples move at every visit."""
    seen = []
    for _ in range(rounds):
        order = queue.next(10**6)
        after = np.zeros(queue.samples)
        after[moving] = 1.0
        queue.record(order, np.zeros(queue.samples), after)
        seen.append(sorted(set(order.tolist())))
    return seen


def test_the_waits_of_an_idle_sample_grow_by_one_round_each_and_one_that_moves_is_always_there():
    seen = play(waiting(3), 16, moving=[1])
    assert all(1 in each for each in seen)
    assert [k for k, each in enumerate(seen) if 0 in each] == [0, 2, 5, 9, 14]


def test_a_round_that_nobody_would_be_in_has_all_samples():
    assert play(waiting(4), 3, moving=[])[1] == [0, 1, 2, 3]


@pytest.mark.parametrize("sampling", ["uniform", "permutation"])
def test_a_round_may_be_taken_in_parts(sampling):
    queue = waiting(sampling=sampling)
    parts = [queue.next(4), queue.next(4)]
    assert [len(part) for part in parts] == [4, 2]
    assert queue.round == 1
    whole = waiting(sampling=sampling).next(6)
    np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_a_sample_of_several_multipliers_moves_if_one_of_them_does():
    queue = waiting(2)
    before, after = np.zeros(6), np.array([0.0, 1.0, 0.0, 0.0, 0.0, 0.0])
    assert queue.record(queue.next(2), before, after)
    np.testing.assert_array_equal(queue.idle, [0, 1])
    assert not queue.record(np.array([1]), after, after)


def test_after_waking_nobody_waits():
    queue = waiting()
    play(queue, 1, moving=[2])
    queue.wake()
    assert len(queue.next(10)) == 6
