"""Lemma 1, Theorems 1 and 2 of the Primal Gradient Solver: what they say, and that runs obey."""

import numpy as np
import pytest

import fenchel as fl
from fenchel import theory
from fenchel.problem.vectors import dual_exponent
from fenchel.steps import PGS
from fenchel.steps.base import Start


def problem_of(p, n=300, d=15, loss=None):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    y = np.sign(X @ rng.normal(size=d) + rng.normal(size=n))
    penalty = fl.penalties.LpSquared(0.1, p) if p > 1.0 else fl.penalties.SignedEntropy(0.1, 2.0)
    return fl.Problem(X, y, fl.losses.Logistic() if loss is None else loss, penalty)


@pytest.mark.parametrize("p", [2.0, 1.5, 1.0])
def test_the_mean_suboptimality_of_random_iterates_is_below_theorem_1(p):
    problem, steps = problem_of(p), 600
    best = fl.solve(problem, tol=1e-9).certificate.dual
    mu, q = problem.penalty.strong_convexity, dual_exponent(p)
    lipschitz = problem.loss.lipschitz * float(np.max(problem.X.row_norms(q)))
    solver, found = PGS(output="random", batch_size=1), []
    for seed in range(30):
        state = solver.begin(problem, Start(np.zeros(15), 0.0, np.zeros(300)), seed)
        for _ in range(steps // 300):
            state = solver.step(state)
        found.append(problem.primal(solver.candidates(state)[-1].w) - best)
    assert np.mean(found) <= theory.pgs_error(lipschitz, mu, steps)


@pytest.mark.parametrize("p", [2.0, 1.2, 1.05, 1.0])
@pytest.mark.parametrize("loss", [fl.losses.Logistic(), fl.losses.Hinge()], ids=str)
def test_the_regret_of_any_order_is_below_lemma_1(p, loss):
    """Against the best model for the same samples, after every hundred steps; in the worst of three orders."""
    problem = problem_of(p, loss=loss)
    R, rows = problem.penalty, np.asarray(problem.X.rows(np.arange(300)))
    for order in (
        np.arange(300),
        np.argsort(problem.y, kind="stable"),
        np.random.default_rng(1).integers(300, size=300),
    ):
        v, w, total, gradients = np.zeros(15), np.zeros(15), 0.0, []
        for t, i in enumerate(order, start=1):
            x, y = rows[i], problem.y[i : i + 1]
            total += float(loss.value(x[None] @ w, y)[0]) + R.value(w)
            gradients.append(float(loss.derivative(x[None] @ w, y)[0]) * x)
            v = v - gradients[-1]
            w = R.grad_conjugate(v / (t + 1))
            if t % 100 == 0 and len(np.unique(problem.y[order[:t]])) == 2:
                seen = fl.Problem(rows[order[:t]], problem.y[order[:t]], loss, R)
                lengths = [np.linalg.norm(g, dual_exponent(p)) for g in gradients]
                bound = theory.pgs_regret(lengths, R.strong_convexity)[-1]
                assert total - t * fl.solve(seen, tol=1e-2).certificate.dual <= bound


def test_the_regret_bound_is_the_sum_of_the_lemma():
    gradients = np.array([1.0, 2.0, 0.5])
    np.testing.assert_allclose(theory.pgs_regret(gradients, 0.1), np.cumsum([5.0, 10.0, 0.25 / 3 * 5.0]))


@pytest.mark.parametrize("error", [1.0, 1e-2, 1e-4])
def test_the_number_of_steps_is_the_smallest_with_that_error(error):
    steps = theory.pgs_iterations(2.0, 0.3, error, delta=0.2)
    assert theory.pgs_error(2.0, 0.3, steps, 0.2) <= error
    assert steps == 1 or theory.pgs_error(2.0, 0.3, steps - 1, 0.2) > error


@pytest.mark.parametrize("p", [2.0, 1.5, 1.1])
def test_more_samples_take_fewer_steps(p):
    least = theory.least_samples(0.1, 2.0, p)
    m = least * np.array([0.5, 2.0, 4.0, 8.0, 1e6])
    steps = theory.pgs_steps(0.1, 2.0, p, m, delta=0.1)
    assert steps[0] == np.inf
    assert np.all(np.diff(steps[1:]) < 0.0)
    assert steps[-1] == pytest.approx(2.0 * 4.0 / (0.01 * (p - 1.0)) / 0.1, rel=1e-4)
    for count, T in zip(m[1:], steps[1:], strict=True):  # Eq. (20) at the lam of the proof is epsilon
        mu = theory.pgs_lam(2.0, p, count, T) * (p - 1.0)
        assert (1.0 / (0.1 * T) + 1.0 / count) / mu + mu * 4.0 / (2.0 * (p - 1.0)) == pytest.approx(0.1)


def test_lam_of_the_proof_balances_its_terms():
    """lam |w0|_p^2 / 2 equals (1/(T delta) + C/m) / (lam (p - 1)), so that their sum is least."""
    lam = theory.pgs_lam(2.0, 1.5, samples=1000, steps=500, delta=0.1)
    assert lam * 2.0**2 / 2.0 == pytest.approx((1.0 / 50.0 + 1e-3) / (lam * 0.5))


def test_bad_constants_are_refused():
    with pytest.raises(ValueError, match="mu must be a positive number"):
        theory.pgs_regret([1.0], 0.0)
    for call in (lambda p: theory.pgs_steps(0.1, 1.0, p, 100), lambda p: theory.least_samples(0.1, 1.0, p)):
        for p in (3.0, 1.0):
            with pytest.raises(ValueError, match=r"p must lie in \(1, 2\]"):
                call(p)
    with pytest.raises(ValueError, match="at most 1"):
        theory.pgs_error(1.0, 1.0, 10, delta=5.0)
