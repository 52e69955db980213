"""The Primal Gradient Solver: its iterates are those of the paper's figures, and Pegasos is a special case."""

from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse as sp

import fenchel as fl
from fenchel.problem.vectors import p_norm
from fenchel.solver.solve import seed_of
from fenchel.steps import PGS, Pegasos
from fenchel.steps.base import Start
from fenchel.steps.stochastic.models import GradientModels, GradientRule
from fenchel.steps.stochastic.pgs import containing_ball, default_batch

N, D, LAM = 200, 30, 0.05
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, D)) * (RNG.random((N, D)) < 0.4)
Y = np.sign(X @ RNG.normal(size=D) + 0.3 * RNG.normal(size=N))
STORAGES = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "csr": sp.csr_array,
    "csc": sp.csc_array,
    "C float32": lambda A: A.astype(np.float32),
    "F float32": lambda A: np.asfortranarray(A.astype(np.float32)),
    "csr float32": lambda A: sp.csr_array(A.astype(np.float32)),
    "csc float32": lambda A: sp.csc_array(A.astype(np.float32)),
    "csr 64": lambda A: _wide(sp.csr_array(A)),
}


@dataclass(frozen=True)
class InNumpy(fl.losses.Loss):
    """A user's loss: the formulas of another one, and no compiled version."""

    of: fl.losses.Loss

    @property
    def is_classification(self):
        return self.of.is_classification

    @property
    def lipschitz(self):
        return self.of.lipschitz

    @property
    def smoothness(self):
        return self.of.smoothness

    @property
    def kinks(self):
        return self.of.kinks

    def value(self, z, y):
        return self.of.value(z, y)

    def derivative(self, z, y):
        return self.of.derivative(z, y)

    def conjugate(self, u, y):
        return self.of.conjugate(u, y)

    def domain(self, y):
        return self.of.domain(y)

    def subdifferential(self, z, y):
        return self.of.subdifferential(z, y)


def _wide(A):
    A.indices, A.indptr = A.indices.astype(np.int64), A.indptr.astype(np.int64)
    return A


def figures_1_and_2(problem, p, orders, batch, ball):
    """The algorithm as printed, sigma = lam (p - 1), with |w|_p in line 6 of Figure 2 and the sign of the gradient."""
    A = problem.X.rows(np.arange(N))
    sigma, q = LAM * (p - 1.0), p / (p - 1.0)
    total, w, t, iterates = np.zeros(A.shape[1]), np.zeros(A.shape[1]), 0, []
    s = problem.weights / problem.weights.mean()
    for order in orders:
        for first in range(0, len(order), batch):
            rows, t = order[first : first + batch], t + 1
            slope = s[rows] * problem.loss.derivative(A[rows] @ w, problem.y[rows])
            total = total - A[rows].T @ slope / len(rows)
            theta = total / ((t + 1) * sigma)
            w = np.sum(np.abs(theta) ** q) ** (2 / q - 1) * np.abs(theta) ** (q - 1) * np.sign(theta) / (q - 1)
            length = np.sum(np.abs(w) ** p) ** (1 / p)
            w = w * ball / length if length > ball else w
            iterates.append(w)
    return np.array(iterates)


def run(problem, solver, passes, w=None, after=None):
    """The candidates after some passes, and the orders of the samples; `after` gets the last iterate of each pass."""
    n, d = problem.shape
    state = solver.begin(problem, Start(np.zeros(d) if w is None else w, 0.0, np.zeros(n)), 7)
    orders, following = [], state.sampler.next

    def recorded():
        orders.append(following().copy())
        return orders[-1]

    state.sampler.next = recorded
    for _ in range(passes):
        state = solver.step(state)
        if after is not None:
            after.append(solver.candidates(state)[0].w)
    return [candidate.w for candidate in solver.candidates(state)], orders


@pytest.mark.parametrize("p", [2.0, 1.8, 1.2, 1.05])
@pytest.mark.parametrize("ball", [None, 0.5])
@pytest.mark.parametrize("batch", [1, 50])
@pytest.mark.parametrize("loss", [fl.losses.Logistic(), InNumpy(fl.losses.Logistic())], ids=["compiled", "numpy"])
@pytest.mark.parametrize("storage", STORAGES)
def test_iterates_are_those_of_the_paper(p, ball, batch, loss, storage):
    """After 1000 steps, and after each pass before them."""
    penalty = fl.penalties.LpSquared(LAM, p, radius=ball)
    problem = fl.Problem(STORAGES[storage](X), Y, loss, penalty)
    (last, average), orders = run(problem, PGS(batch_size=batch), 1000 * batch // N, after=(every := []))
    iterates = figures_1_and_2(problem, p, orders, batch, np.inf if ball is None else ball)
    weights = np.arange(len(iterates)) + 2.0
    assert len(iterates) == 1000
    np.testing.assert_allclose(every, iterates[N // batch - 1 :: N // batch], rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(last, every[-1])
    np.testing.assert_allclose(average, weights @ iterates / weights.sum(), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("p", [2.0, 1.8, 1.2, 1.05])
@pytest.mark.parametrize("storage", STORAGES)
def test_a_bias_inside_the_norm_is_one_more_weight(p, storage):
    """The regulariser of section VII with the power corrected: 1/(2(p-1)) (|w|_p^p + |b|^p)^(2/p)."""
    penalty = fl.penalties.LpSquared(LAM, p)
    problem = fl.Problem(fl.Design(STORAGES[storage](X), constant=1.0), Y, fl.losses.Logistic(), penalty)
    (last, average), orders = run(problem, PGS(batch_size=5), 25)
    iterates = figures_1_and_2(problem, p, orders, 5, np.inf)
    weights = np.arange(len(iterates)) + 2.0
    np.testing.assert_allclose(last, iterates[-1], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(average, weights @ iterates / weights.sum(), rtol=1e-10, atol=1e-12)
    assert last[-1] != 0.0
    w, b = last[:-1], last[-1]
    inside = (np.sum(np.abs(w) ** p) + np.abs(b) ** p) ** (2.0 / p) * LAM / 2.0
    loss = np.mean(np.logaddexp(0.0, -Y * (problem.X.rows(np.arange(N))[:, :-1] @ w + b)))
    certificate = fl.certify(problem, last)
    assert certificate.primal == pytest.approx(loss + inside, rel=1e-12)
    assert certificate.primal - fl.solve(problem, tol=1e-9).certificate.primal <= certificate.gap


@pytest.mark.parametrize("batch", [1, 50])
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("loss", [fl.losses.Hinge(), InNumpy(fl.losses.Hinge())], ids=["compiled", "numpy"])
def test_the_signed_entropy_makes_it_exponentiated_gradients(batch, storage, loss):
    """EG with both signs: a and b, of sum B together, are multiplied by exp(-g / lam t) and exp(g / lam t)."""
    B, lam = 3.0, 0.02
    problem = fl.Problem(STORAGES[storage](X), Y, loss, fl.penalties.SignedEntropy(lam, B))
    (last, average), orders = run(problem, PGS(batch_size=batch), 1000 * batch // N)
    A, log, iterates, w, t = problem.X.rows(np.arange(N)), np.zeros(2 * D), [], np.zeros(D), 0
    for order in orders:
        for first in range(0, N, batch):
            rows, t = order[first : first + batch], t + 1
            g = A[rows].T @ problem.loss.derivative(A[rows] @ w, Y[rows]) / len(rows)
            log = log * t / (t + 1) + np.concatenate([-g, g]) / (lam * (t + 1))
            parts = B * np.exp(log - log.max()) / np.sum(np.exp(log - log.max()))
            w = parts[:D] - parts[D:]
            iterates.append(w)
    weights = np.arange(len(iterates)) + 2.0
    np.testing.assert_allclose(last, iterates[-1], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(average, weights @ iterates / weights.sum(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("p", [2.0, 1.5, 1.0])
@pytest.mark.parametrize("of", [fl.losses.Logistic(), fl.losses.Hinge(), fl.losses.Squared()], ids=str)
@pytest.mark.parametrize(("classes", "count", "batch"), [(None, 2, 7), (3, 3, 7), (None, 1, 1), (None, 2, 1)])
@pytest.mark.parametrize("storage", ["C float32", "csr", "csr float32"])
def test_steps_in_numpy_are_those_of_the_compiled_pass(p, of, classes, count, batch, storage):
    """The models, and all sums: one model with steps of one sample has a compiled pass of its own."""
    codes = np.random.default_rng(3).integers(0, 3, size=N).astype(float)
    design = fl.Design(STORAGES[storage](X), constant=0.7 if classes is None else 0.0)
    s, order = np.random.default_rng(4).random(N) + 0.1, np.random.default_rng(5).permutation(N)
    step = 0.0 if design.constant else 0.5
    rule = GradientRule(p, constant=design.constant, intercept_step=step, intercept_limit=0.1)
    found = []
    for loss in (of, InNumpy(of)):
        labels = None if classes is None else np.arange(3.0)
        models = GradientModels(rule, np.full(count, 0.1), D, np.full(count, 0.9), labels)
        each, y = np.full((-(-N // 4), 2 * count), np.nan), Y if classes is None else codes
        sums, drawn = models.learn(loss, design, y, s, order, s.mean(), batch, 12, each)
        every_fourth = s[order[::4], None] / s.mean()
        np.testing.assert_allclose((every_fourth * each).sum(axis=0), sums[3:5].ravel(), rtol=1e-9)
        found.append((models.last(), models.average(), sums, drawn, each))
    for compiled, plain in zip(*found, strict=True):
        np.testing.assert_allclose(compiled, plain, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("p", [2.0, 1.5])
@pytest.mark.parametrize("sampling", ["uniform", "permutation", "cyclic"])
def test_weights_of_samples_multiply_their_gradients(p, sampling):
    weights = np.random.default_rng(1).integers(1, 4, size=N).astype(float)
    problem = fl.Problem(X, Y, fl.losses.Hinge(), fl.penalties.LpSquared(LAM, p), sample_weight=weights)
    (last, _), orders = run(problem, PGS(sampling=sampling, batch_size=3), 4)
    np.testing.assert_allclose(last, figures_1_and_2(problem, p, orders, 3, np.inf)[-1], rtol=1e-10, atol=1e-12)


def test_a_random_iterate_is_one_of_all_with_the_same_probability():
    problem = fl.Problem(X[:20], Y[:20], fl.losses.Hinge(), fl.penalties.L2(LAM))
    solver, found = PGS(output="random", batch_size=1, sampling="cyclic"), []
    for seed in range(400):
        state = solver.begin(problem, Start(np.zeros(D), 0.0, np.zeros(20)), seed)
        for _ in range(5):
            state = solver.step(state)
        (drawn,) = solver.candidates(state)
        found.append(drawn.w)
    (last, _), orders = run(
        fl.Problem(X[:20], Y[:20], fl.losses.Hinge(), fl.penalties.L2(LAM)), PGS(sampling="cyclic"), 5
    )
    every, total, w = [], np.zeros(D), np.zeros(D)
    for t, i in enumerate(np.concatenate(orders), start=1):
        total = total - problem.loss.derivative(X[i : i + 1] @ w, Y[i : i + 1])[0] * X[i]
        w = total / ((t + 1) * LAM)
        every.append(w)
    which = [int(np.argmin(np.abs(np.array(every) - w).max(axis=1))) for w in found]
    assert max(np.abs(every[k] - w).max() for k, w in zip(which, found, strict=True)) < 1e-12
    passes = np.bincount(np.array(which) // 20, minlength=5)
    assert np.abs(passes - 80).max() < 50  # 80 are expected in each, with a deviation of 8
    np.testing.assert_allclose(last, every[-1], rtol=1e-10)


@pytest.mark.parametrize("output", ["last", "average", "random"])
@pytest.mark.parametrize("passes", [1, 5])
def test_the_certificate_is_that_of_the_output(output, passes):
    problem = fl.Problem(X, Y, fl.losses.Hinge(), fl.penalties.L2(LAM))
    with pytest.warns(fl.NotCertifiedWarning):
        result = fl.solve(
            problem, solver="pgs", output=output, max_iter=passes, check_every=passes, tol=1e-12, random_state=3
        )
    solver = PGS(output=output)
    state = solver.begin(problem, Start(np.zeros(D), 0.0, np.zeros(N)), seed_of(3))
    for _ in range(passes):
        state = solver.step(state)
    certified = [problem.primal(candidate.w) for candidate in solver.candidates(state)]
    assert len(certified) == (2 if output == "average" else 1)
    assert result.certificate.primal == pytest.approx(min(certified), rel=1e-12)
    if output == "random":
        assert abs(certified[0] - problem.primal(state.models.last()[:D, 0])) > 1e-6


def test_pegasos_is_the_solver_without_the_offset_and_with_projections_that_stay():
    problem = fl.Problem(X, Y, fl.losses.Hinge(), fl.penalties.L2(1e-3))
    radius = 1.0 / np.sqrt(1e-3)
    assert containing_ball(problem) == pytest.approx(radius)
    for batch in (1, 8):
        (last,), orders = run(problem, Pegasos(batch_size=batch), 3)
        w, t = np.zeros(D), 0  # Figure 2 of Shalev-Shwartz, Singer, Srebro and Cotter (2011)
        for order in orders:
            for first in range(0, N, batch):
                rows, t = order[first : first + batch], t + 1
                wrong = rows[Y[rows] * (X[rows] @ w) < 1.0]
                w = (1.0 - 1.0 / t) * w + Y[wrong] @ X[wrong] / (1e-3 * t * len(rows))
                w *= min(1.0, radius / max(np.linalg.norm(w), 1e-300))
        np.testing.assert_allclose(last, w, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("p", [2.0, 1.5])
@pytest.mark.parametrize("ball", [0.2, 3])
@pytest.mark.parametrize("batch", [1, 50])
@pytest.mark.parametrize("storage", ["C", "csr", "csr float32"])
def test_a_ball_that_is_asked_for_is_that_of_figure_2(p, ball, batch, storage):
    """For a loss with no Lipschitz constant as well, whose own ball is larger."""
    for loss, y in ((fl.losses.Logistic(), Y), (fl.losses.Squared(), Y)):
        problem = fl.Problem(STORAGES[storage](X), y, loss, fl.penalties.LpSquared(LAM, p))
        (last, average), orders = run(problem, PGS(batch_size=batch, ball=ball), 1000 * batch // N)
        iterates = figures_1_and_2(problem, p, orders, batch, ball)
        weights = np.arange(len(iterates)) + 2.0
        np.testing.assert_allclose(last, iterates[-1], rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(average, weights @ iterates / weights.sum(), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(("p", "expected"), [(2.0, 1), (1.5, 20)])
def test_the_default_batch_is_as_long_as_the_weights_or_one_sample(p, expected):
    """d over the mean number of entries of a row: 2000 / 100; sixteen at least in NumPy."""
    A = sp.random_array((50, 2000), density=0.05, format="csr", rng=np.random.default_rng(0))
    penalty = fl.penalties.LpSquared(LAM, p)
    for loss, least in ((fl.losses.Logistic(), 1), (InNumpy(fl.losses.Logistic()), 16)):
        problem = fl.Problem(A, np.where(np.arange(50) % 2, 1.0, -1.0), loss, penalty)
        state = PGS().begin(problem, Start(np.zeros(2000), 0.0, np.zeros(50)), 0)
        assert state.batch == max(expected, least)
        assert state.batch == default_batch(loss, p, problem.design)
    with_constant = fl.Design(A[:, :100], constant=1.0)
    assert default_batch(fl.losses.Hinge(), 1.5, with_constant) == int(100 * 50 / A[:, :100].nnz)


@pytest.mark.parametrize("loss", [fl.losses.Squared(), fl.losses.SquaredHinge(), fl.losses.Exponential()], ids=str)
@pytest.mark.parametrize("p", [2.0, 1.5])
def test_losses_without_a_lipschitz_constant_stay_in_a_ball_with_the_optimum(loss, p):
    problem = fl.Problem(X, Y, loss, fl.penalties.LpSquared(LAM, p))
    best = fl.solve(problem, tol=1e-9)
    radius = containing_ball(problem)
    assert p_norm(best.w, p) <= radius
    for w in run(problem, PGS(), 3)[0]:
        assert p_norm(w, p) <= radius * (1.0 + 1e-12)


@pytest.mark.parametrize("p", [2.0, 1.5])
@pytest.mark.parametrize(
    "loss", [fl.losses.Logistic(), fl.losses.Hinge(), fl.losses.Absolute(), fl.losses.Squared()], ids=str
)
@pytest.mark.parametrize("intercept", [False, True])
def test_models_are_certified_and_approach_the_optimum(p, loss, intercept):
    problem = fl.Problem(X, Y, loss, fl.penalties.LpSquared(LAM, p), intercept=intercept)
    best = fl.solve(problem, tol=1e-8)
    result = fl.solve(problem, solver="pgs", tol=0.1, max_iter=400, random_state=0)
    assert result.status == "certified"
    assert result.certificate.primal - best.certificate.dual >= -1e-12
    assert result.certificate.primal - best.certificate.primal <= result.certificate.gap


@pytest.mark.parametrize("p", [2.0, 1.5, 1.05])
@pytest.mark.parametrize("loss", [fl.losses.Exponential(), InNumpy(fl.losses.Exponential())], ids=["compiled", "numpy"])
@pytest.mark.parametrize("lam", [1.0, 0.1, 1e-3])
def test_the_exponential_loss_has_an_intercept(p, loss, lam):
    """Steps of the intercept are limited, so that it does not diverge."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(300, 20))
    y = np.sign(A @ rng.normal(size=20) + 2.0 * rng.normal(size=300) + 1.0)
    problem = fl.Problem(A, y, loss, fl.penalties.LpSquared(lam, p), intercept=True)
    with np.errstate(all="ignore"), pytest.warns(fl.NotCertifiedWarning):
        result = fl.solve(problem, solver="pgs", max_iter=10, tol=1e-8)
    assert result.status == "max_iter"
    if lam == 1.0:
        best = fl.solve(problem.replace(loss=fl.losses.Exponential()), tol=1e-8).certificate.primal
        assert result.certificate.primal - best < 0.01 * best
    state = PGS().begin(problem, Start(np.zeros(20), 0.0, np.zeros(300)), 0)
    for _ in range(3):
        with np.errstate(all="ignore"):  # the average of what was far away
            state = PGS().step(state)
        assert abs(state.models.numbers[2, 0]) < 10.0 * containing_ball(problem) + 10.0
        assert np.isfinite(state.models.last()).all()


def test_a_constant_column_is_inside_the_norm():
    design = fl.Design(X, constant=2.0)
    problem = fl.Problem(design, Y, fl.losses.Logistic(), fl.penalties.LpSquared(LAM, 1.5))
    explicit = fl.Problem(np.column_stack([X, np.full(N, 2.0)]), Y, fl.losses.Logistic(), problem.penalty)
    (last, average), _ = run(problem, PGS(batch_size=5), 3)
    (same, mean), _ = run(explicit, PGS(batch_size=5), 3)
    np.testing.assert_allclose(last, same, rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(average, mean, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("p", [2.0, 1.5, 1.05, 1.0])
@pytest.mark.parametrize("loss", [fl.losses.Logistic(), fl.losses.Hinge(), fl.losses.Squared()], ids=str)
def test_no_iterate_has_a_gap_below_its_suboptimality_at_any_scale(p, loss):
    """X times a power of 2, w over it: the objective is the same, and so is the optimum, by another solver."""
    rng = np.random.default_rng(1)
    A, y = rng.normal(size=(25, 6)), np.where(np.arange(25) < 12, -1.0, 1.0)

    def problem(k):
        penalty = fl.penalties.SignedEntropy(LAM * k, 2.0 / k) if p == 1.0 else fl.penalties.LpSquared(LAM * k * k, p)
        return fl.Problem(A * k, y, loss, penalty)

    best = fl.solve(problem(1.0), solver="pdhg", tol=1e-9, max_iter=20000)
    assert best.certificate.ok
    for k in (2.0**-500, 2.0**-30, 1.0, 2.0**30, 2.0**500):
        scaled, models = problem(k), []
        run(scaled, PGS(batch_size=3), 4, after=models)
        for w in [*models, best.w / k, np.zeros(6)]:
            certificate = fl.certify(scaled, w, effort="low")
            primal = problem(1.0).primal(w * k)
            assert certificate.primal == pytest.approx(primal, rel=1e-11)
            assert certificate.gap >= primal - best.certificate.primal - 1e-12
            assert certificate.dual <= best.certificate.primal + certificate.rounding + 1e-12
        assert fl.certify(scaled, best.w / k).relative_gap < 1e-5


@pytest.mark.parametrize("p", [2.0, 1.5])
def test_a_start_is_not_forgotten(p):
    problem = fl.Problem(X, Y, fl.losses.Logistic(), fl.penalties.LpSquared(LAM, p))
    best = fl.solve(problem, tol=1e-10)
    near, far = (problem.primal(run(problem, PGS(), 1, w)[0][1]) for w in (best.w, None))
    assert near - best.certificate.primal < far - best.certificate.primal


@pytest.mark.parametrize("p", [2.0, 1.5])
@pytest.mark.parametrize("models", [2, 5, 7, 12])
def test_models_side_by_side_are_those_alone(p, models):
    problem = fl.Problem(sp.csr_array(X), Y, fl.losses.Logistic(), fl.penalties.L2(1.0))
    lams, order, rule = LAM * 2.0 ** np.arange(models), np.arange(N), GradientRule(p, intercept_step=1.0)
    given = problem.loss, problem.design, problem.y, problem.weights, order, 1.0, 1 if p == 2.0 else 10
    together = GradientModels(rule, lams, D, np.full(models, np.inf))
    sums, _ = together.learn(*given)
    for c, lam in enumerate(lams):
        alone = GradientModels(rule, np.array([lam]), D, np.array([np.inf]))
        own, _ = alone.learn(*given)
        np.testing.assert_allclose(together.last()[:, c], alone.last()[:, 0], rtol=1e-10, atol=1e-13)
        np.testing.assert_allclose(together.average()[:, c], alone.average()[:, 0], rtol=1e-10, atol=1e-13)
        np.testing.assert_allclose(sums[:, c], own[:, 0], rtol=1e-9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "pgs: batch_size"),
        ({"ball": -1.0}, "pgs: ball must be positive"),
        ({"ball": "large"}, "pgs: ball must be"),
        ({"ball": True}, "pgs: ball must be positive"),
        ({"ball": [1.0]}, "pgs: ball must be positive"),
        ({"ball": np.nan}, "pgs: ball must be positive"),
        ({"output": "best"}, "pgs: output must be one of"),
        ({"sampling": "importance"}, "pgs: sampling must be one of"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        PGS(**options)


def test_other_penalties_are_refused_with_a_reason():
    with pytest.raises(TypeError, match="'pgs' needs L2, LpSquared or SignedEntropy as penalty"):
        fl.solve(fl.Problem(X, Y, fl.losses.Logistic(), fl.penalties.ElasticNet(0.1)), solver="pgs")
    problem = fl.Problem(X, Y, fl.losses.Logistic(), fl.penalties.SignedEntropy(0.1, 1.0))
    with pytest.raises(TypeError, match="its radius"):
        fl.solve(problem, solver="pgs", ball=2.0)
