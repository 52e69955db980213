"""Dual coordinate ascent by several threads, each with weights of its own."""

import copy
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import fenchel as fl
from fenchel.data.design import Design
from fenchel.solver.run import Carried, Fit, Stop, run
from fenchel.steps import SDCA, BlockSDCA, Start
from fenchel.steps.dual_ascent import threads as epoch_threads
from tests.helpers.registry import name, targets
from tests.laws.test_exact_arithmetic import badly_scaled, cancelling, offset, plain
from tests.laws.test_own_products import exact_residual, states
from tests.steps.test_sdca import zero

PENALTIES = [fl.penalties.L2(1e-2), fl.penalties.ElasticNet(1e-2, 0.5), fl.penalties.LpSquared(1e-2, 1.5)]


@pytest.fixture
def eager(monkeypatch):
    """Threads share epochs of small problems as well."""
    monkeypatch.setattr(epoch_threads, "cores", lambda: 64)
    monkeypatch.setattr(epoch_threads, "time", Clock(1.0))
    # there may be fewer cores than threads, and waiting takes long: few rounds
    tune(monkeypatch, work_per_thread=1, copies_per_round=0.1, steps_per_round=5, most_rounds=4)


def tune(monkeypatch, **values):
    monkeypatch.setattr(epoch_threads, "TUNING", replace(epoch_threads.TUNING, **values))


class Clock:
    """Every look is a second later, in which the threads had a share of two cores."""

    def __init__(self, share):
        self.share, self.looks = share, {"wall": 0, "cpu": 0}

    def perf_counter(self):
        self.looks["wall"] += 1
        return float(self.looks["wall"])

    def process_time(self):
        self.looks["cpu"] += 1
        return 2.0 * self.share * self.looks["cpu"]


def shared(problem, threads):
    """The same problem with just so many threads, however few its entries and the cores are."""
    design = copy.copy(problem.design)
    design.threads = threads
    return problem.replace(X=design)


def text(loss, penalty, n=2000, d=300, **options):
    rows = sp.random_array((n, d), density=0.05, format="csr", rng=np.random.default_rng(1))
    labels = np.where(rows @ np.random.default_rng(2).normal(size=d) > 0, 1.0, -1.0)
    return fl.Problem(rows, labels, loss, penalty, **options)


def alike(n=1000, d=5):
    """Rows that are nearly the same: what one thread does along them, all do."""
    rng = np.random.default_rng(3)
    return 1.0 + 0.1 * rng.normal(size=(n, d)), np.resize([1.0, -1.0], n)


def solved(problem, threads, tol=1e-4, seed=0, **options):
    return run(
        Fit(shared(problem, threads), Stop(tol=tol, max_iter=3000), zero(problem), seed), Carried(SDCA(**options))
    )[0]


@pytest.mark.parametrize("threads", [2, 5])
@pytest.mark.parametrize("penalty", PENALTIES, ids=name)
@pytest.mark.parametrize("loss", [fl.losses.Hinge(), fl.losses.Logistic(), fl.losses.Squared()], ids=name)
def test_the_same_optimum_certified(loss, penalty, threads, eager):
    problem = text(loss, penalty, n=500, d=60)
    one, many = solved(problem, 1), solved(problem, threads)
    assert one.certificate.ok
    assert many.certificate.ok
    assert not np.array_equal(one.alpha, many.alpha)
    assert many.certificate.dual <= one.certificate.primal
    assert one.certificate.dual <= many.certificate.primal


@pytest.mark.parametrize("threads", [2, 4])
@pytest.mark.parametrize("accelerate", [True, False])
@pytest.mark.parametrize("loss", [fl.losses.Logistic(), fl.losses.Squared(), fl.losses.SquaredHinge()], ids=name)
def test_what_all_threads_do_is_not_done_as_many_times(loss, accelerate, threads, eager):
    """Along a direction that all rows share every thread goes all the way: the sum of their moves would go too far."""
    problem = fl.Problem(*alike(), loss, fl.penalties.L2(1e-2))
    one, many = (solved(problem, k, tol=1e-5, accelerate=accelerate) for k in (1, threads))
    assert many.certificate.ok
    assert many.n_iter <= 3 * threads * one.n_iter  # adding up the moves takes fifty times as many


@pytest.mark.parametrize("penalty", PENALTIES, ids=name)
def test_same_seed_same_bits_with_any_number_of_threads(penalty, eager):
    problem = text(fl.losses.Hinge(), penalty, n=500, d=60)
    for threads in (1, 2, 3):
        first, again = (solved(problem, threads, tol=1e-3, seed=5) for _ in range(2))
        np.testing.assert_array_equal(first.w, again.w)
        np.testing.assert_array_equal(first.alpha, again.alpha)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", [fl.losses.Multinomial(), fl.losses.CrammerSinger()], ids=name)
@pytest.mark.parametrize("penalty", PENALTIES[:2], ids=name)
def test_many_classes(penalty, loss, intercept, eager):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(600, 8))
    y = np.argmax(X[:, :4] + rng.normal(size=(600, 4)), axis=1)
    problem = fl.MulticlassProblem(X, y, loss, penalty, intercept=intercept)
    found = []
    for threads in (1, 2, 3, 3):
        start = Start(np.zeros((4, 8)), np.zeros(4), np.zeros((600, 4)))
        found.append(
            run(Fit(shared(problem, threads), Stop(tol=1e-2, max_iter=3000), start, 0), Carried(BlockSDCA()))[0]
        )
        assert found[-1].certificate.ok
        assert found[-1].certificate.dual <= found[0].certificate.primal
        assert found[0].certificate.dual <= found[-1].certificate.primal
    assert not np.array_equal(found[1].alpha, found[0].alpha)
    np.testing.assert_array_equal(found[2].alpha, found[3].alpha)


@pytest.mark.parametrize("design", [plain, cancelling, badly_scaled, offset])
@pytest.mark.parametrize("threads", [2, 5])
@pytest.mark.parametrize("intercept", ["none", "free", "penalised"])
@pytest.mark.parametrize("loss", [fl.losses.Hinge(), fl.losses.Squared()], ids=name)
def test_how_far_weights_drift_is_known_in_exact_arithmetic(loss, intercept, threads, design, eager):
    rng, n = np.random.default_rng(0), 100
    X = Design(design(rng, n, 3), constant=3.0 * (intercept == "penalised"))
    X.threads = threads
    y = targets(loss, rng, n)
    problem = fl.Problem(X, y, loss, fl.penalties.L2(0.01), intercept=intercept == "free")
    for state in states(problem, SDCA(), 5):
        assert state.threads.plan(n)[0] == threads
        candidate = SDCA().candidates(state)[0]
        residual = exact_residual(problem, candidate.w, candidate.alpha)
        assert residual <= candidate.residual.norm + candidate.residual.error


@pytest.mark.parametrize("threads", [2, 3])
def test_u_follows_the_multipliers(threads, eager):
    p = shared(text(fl.losses.Logistic(), fl.penalties.L2(1e-3), intercept=True), threads)
    solver = SDCA(accelerate=False)
    state = solver.begin(p, zero(p), 0)
    assert state.threads.plan(2000)[0] == threads
    for _ in range(5):
        state = solver.step(state)
    np.testing.assert_allclose(state.u[:-1], p.dual_vector(state.alpha) / 1e-3, atol=1e-10)


def test_every_sample_is_visited_once(eager):
    p = shared(text(fl.losses.Squared(), fl.penalties.L2(1e-3)), 3)
    state = SDCA(accelerate=False).begin(p, zero(p), 0)
    order = np.arange(1999)
    *_, kept, _, moves = state.ascent.epoch(order, state.alpha, state.u, np.inf, None, 3, 7)
    assert kept == moves == 1999
    np.testing.assert_array_equal(order, np.arange(1999))
    assert np.count_nonzero(state.alpha) == 1999


@pytest.mark.parametrize("sampling", ["uniform", "importance", "cyclic"])
def test_other_orders_are_for_one_thread(sampling, eager):
    """Two threads could meet on one sample, and a change of its multiplier would be lost; or are not alike."""
    p = text(fl.losses.Logistic(), fl.penalties.L2(1e-2))
    solver, found = SDCA(sampling=sampling, accelerate=False), []
    for threads in (1, 2):
        found.append(solver.step(solver.begin(shared(p, threads), zero(p), 0)).alpha)
    np.testing.assert_array_equal(found[0], found[1])


def test_threads_that_bring_no_progress_are_let_go(eager):
    p = shared(text(fl.losses.Squared(), fl.penalties.L2(1e-3)), 2)
    solver = SDCA()
    state = solver.step(solver.begin(p, zero(p), 0))
    z = p.scores(state.weights(), 0.0)
    for gap, threads in ((1.0, 2), (0.5, 2), (0.5, 1), (0.1, 1)):
        solver.observe(state, z, 1.0, gap)
        assert state.threads.plan(2000)[0] == threads


def test_threads_without_cores_are_let_go(eager, monkeypatch):
    p = shared(text(fl.losses.Squared(), fl.penalties.L2(1e-3)), 2)
    found = SDCA().begin(p, zero(p), 0).threads
    for share, threads in ((0.5, 2), (0.9, 2), (0.5, 2), (0.5, 1), (0.9, 1)):
        monkeypatch.setattr(epoch_threads, "time", Clock(share))
        found.plan(2000)
        found.done(busy=1.0)
        assert found.plan(2000)[0] == threads


def test_an_infinite_gap_says_nothing_of_threads(eager):
    p = shared(text(fl.losses.Squared(), fl.penalties.L2(1e-3)), 2)
    found = SDCA().begin(p, zero(p), 0).threads
    for gap in (np.inf, np.inf, 1.0):
        found.checked(gap)
        assert found.plan(2000)[0] == 2


def test_little_work_is_done_by_one_thread():
    p = shared(text(fl.losses.Squared(), fl.penalties.L2(1e-3)), 2)
    assert SDCA().begin(p, zero(p), 0).threads.plan(2000) == (1, 1)


def test_no_more_threads_than_cores_and_than_there_is_work_for(monkeypatch):
    design = shared(text(fl.losses.Squared(), fl.penalties.L2(1e-3)), 8).design  # 30000 entries
    tune(monkeypatch, work_per_thread=1)
    monkeypatch.setattr(epoch_threads, "cores", lambda: 64)
    assert epoch_threads.EpochThreads(design, 300).plan(2000) == (5, 4)  # 6 would have less than 4 rounds of 100 steps
    monkeypatch.setattr(epoch_threads, "cores", lambda: 3)
    assert epoch_threads.EpochThreads(design, 300).plan(2000) == (3, 6)
    assert epoch_threads.EpochThreads(design, 3000).plan(2000) == (1, 1)
    assert epoch_threads.EpochThreads(design, 3000, busy=0.1).plan(2000) == (3, 1)


@pytest.mark.skipif(sys.platform != "linux", reason="limits the address space")
def test_without_threads_one_does_the_work():
    """In a process that has no memory left for the stack of a thread."""
    code = """
import resource
import threading
import numpy as np
import fenchel as fl
from fenchel.steps import SDCA, Start

X = np.random.default_rng(0).normal(size=(100, 3))
p = fl.Problem(X, np.resize([1.0, -1.0], 100), fl.losses.Squared(), fl.penalties.L2(1e-2))
def epoch(threads):
    state = SDCA(accelerate=False).begin(p, Start(np.zeros(3), 0.0, np.zeros(100)), 0)
    state.ascent.epoch(np.arange(100), state.alpha, state.u, np.inf, None, threads, 2)
    return state.alpha
one = epoch(1)
used = 1024 * int(next(line for line in open("/proc/self/status") if line.startswith("VmSize")).split()[1])
resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 20), used + (1 << 20)))
try:
    threading.Thread(target=print).start()
    print("a thread was to be had")
except RuntimeError:
    print(np.array_equal(one, epoch(2)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "True\n", done.stderr


@pytest.mark.parametrize(("threads", "rounds", "held"), [(0, 1, False), (2, 0, False), (2, 1, True)])
def test_the_kernel_rejects_what_it_cannot_do(threads, rounds, held):
    p = text(fl.losses.Squared(), fl.penalties.L2(1e-3))
    state = SDCA().begin(p, zero(p), 0)
    averages = np.zeros(2000) if held else None
    with pytest.raises(ValueError, match="one thread if it collects an average"):
        state.ascent.epoch(np.arange(2000), state.alpha, state.u, np.inf, averages, threads, rounds)
