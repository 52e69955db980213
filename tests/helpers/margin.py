"""Algorithms 1 and 2 of Ji, Srebro and Telgarsky (2021) as they are printed, and data with a known margin."""

import numpy as np
from scipy.special import log_softmax, softmax

import fenchel as fl


def signs(n, rng):
    return np.where(rng.random(n) < 0.5, -1.0, 1.0)


def separable(seed, n=None, d=None):
    """Points on both sides of a plane through the origin, at some distance; labels."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 60)) if n is None else n
    d = int(rng.integers(1, 12)) if d is None else d
    u = rng.normal(size=d)
    u /= np.linalg.norm(u)
    y = signs(n, rng)
    X = rng.normal(size=(n, d))
    X += np.outer(y * rng.uniform(0.05, 1.0, size=n) - X @ u, u)
    return X * 10.0 ** rng.uniform(-2.0, 2.0), y


def mixed_up(seed, n=40, d=4):
    """Points that no plane separates."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), signs(n, rng)


def hard(X, y, **arguments):
    return fl.Interpolation(X, fl.sets.HalfLine(1.0, y), **arguments)


def largest_margin(X, y):
    """To a relative 1e-9."""
    result = fl.solve(hard(X, y), tol=1e-9)
    return 1.0 / np.linalg.norm(result.w)


def unit_rows(X, y):
    """Z with rows of norm at most 1."""
    Z = -np.asarray(y)[:, None] * X
    return Z / np.linalg.norm(Z, axis=1).max()


def margin_of(Z, w):
    return -np.max(Z @ w) / np.linalg.norm(w)


def algorithm_1(Z, steps):
    """w_t, q_t and Z'mu_t = 2 g_t / t for t = 1, 2, ..."""
    n, d = Z.shape
    w, g, q = np.zeros(d), np.zeros(d), np.full(n, 1.0 / n)
    for t in range(steps + 1):
        g = t / (t + 1.0) * (g + Z.T @ q)
        if t:
            yield w, q, 2.0 * g / t
        w = w - (g + Z.T @ q)
        q = softmax(Z @ w)


def dual_nesterov(Z, steps):
    """q_t and mu_t of section 3.2, from products with the Gram matrix."""
    n, K = len(Z), Z @ Z.T
    log_q, mu = np.full(n, -np.log(n)), np.full(n, 1.0 / n)
    for t in range(steps):
        share = 2.0 / (t + 2.0)
        nu = (1.0 - share) * mu + share * np.exp(log_q)
        log_q = log_softmax(log_q - K @ nu / share)
        mu = (1.0 - share) * mu + share * np.exp(log_q)
        yield np.exp(log_q), mu


def algorithm_2(Z, drawn, theta, beta):
    """w_t after these rows."""
    w, g = np.zeros(Z.shape[1]), np.zeros(Z.shape[1])
    for t, i in enumerate(drawn):
        g = beta(t) * (g + Z[i])
        w = w - theta(t) * (g + Z[i])
        yield w
