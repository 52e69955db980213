"""Algorithms as the papers print them, for comparison."""

import numpy as np


def minibatch_approx(problem, curvature, batch, steps, seed):
    """The iterates of APPROX over weights with tau = batch coordinates a step (Fercoq and Richtarik 2015)."""
    d, rng = problem.shape[1], np.random.default_rng(seed)
    x = z = np.zeros(d)
    theta = batch / d
    for _ in range(steps):
        y = (1.0 - theta) * x + theta * z
        v = problem.dual_vector(-problem.loss.derivative(problem.scores(y), problem.y))
        drawn = rng.choice(d, batch, replace=False)
        t = batch / (d * theta * curvature[drawn])
        moved = z.copy()
        moved[drawn] = problem.penalty.prox(z[drawn] + t * v[drawn], t)
        x = y + d / batch * theta * (moved - z)
        z = moved
        theta = (np.sqrt(theta**4 + 4.0 * theta**2) - theta**2) / 2.0
        yield x
