"""What a fit may cost, and what it gives when it is stopped: memory beside the data, interrupts, deadlines."""

import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import fenchel as fl
from fenchel.solver.blas import blas_threads

MEMORY = """
import resource, sys
import numpy as np, scipy.sparse as sp
import fenchel as fl

solver, kind = sys.argv[1:]
rng = np.random.default_rng(0)
if kind == "dense":
    X = rng.standard_normal((30_000, 600), dtype=np.float32)
else:
    n, d, row = 60_000, 20_000, 200
    indices = rng.integers(0, d // row, size=(n, row), dtype=np.int32) + (d // row) * np.arange(row, dtype=np.int32)
    X = sp.csr_array((rng.standard_normal(n * row, dtype=np.float32), indices.ravel(), np.arange(0, n * row + 1, row)),
                     shape=(n, d))
    X.indptr = X.indptr.astype(np.int32)
    del indices
y = np.where(X @ rng.standard_normal(X.shape[1]).astype(np.float32) > 0, 1.0, -1.0)
small = fl.Problem(rng.normal(size=(50, 5)), np.ones(50), fl.losses.Squared(), fl.penalties.L2(1.0))
fl.solve(small, solver=solver)  # libraries are loaded
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
problem = fl.Problem(X, y, fl.losses.Logistic(), fl.penalties.L2(1.0 / len(y)))
result = fl.solve(problem, solver=solver, tol=1e-3, max_iter=30, warn=False)
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print((after - before) / 1024)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ru_maxrss counts in other units elsewhere")
@pytest.mark.parametrize(("solver", "kind"), [("sdca", "dense"), ("sdca", "sparse"), ("newton", "dense")])
def test_float32_data_are_never_widened_as_a_whole(solver, kind):
    """The data take 70 and 96 MB, and twice as much for the numbers in float64; what is added stays far below that."""
    out = subprocess.run([sys.executable, "-c", MEMORY, solver, kind], capture_output=True, text=True, check=True)
    assert float(out.stdout) < 45.0, out.stdout


def test_an_interrupted_fit_keeps_its_best_model_with_its_true_certificate():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 1500))
    y = np.where(X[:, 0] + rng.normal(size=4000) > 0, 1.0, -1.0)
    problem = fl.Problem(X, y, fl.losses.Hinge(), fl.penalties.L2(1e-7))
    alarm = threading.Thread(target=lambda: os.kill(os.getpid(), signal.SIGINT))

    def press(check):
        if check.iteration >= 20 and alarm.ident is None:
            alarm.start()

    with pytest.warns(fl.NotCertifiedWarning, match="interrupted"):
        result = fl.solve(problem, tol=1e-12, callback=press, max_iter=10_000)
    alarm.join()
    assert result.status == "interrupted"
    assert np.isfinite(result.certificate.gap)
    again = fl.certify(problem, result.w, alpha=result.alpha, effort="low")
    assert result.certificate.primal == pytest.approx(again.primal)
    assert result.certificate.gap >= result.certificate.primal - again.primal
    assert problem.primal(result.w) < problem.primal(np.zeros(1500))


def test_a_deadline_is_kept_by_every_solver(clock):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 300))
    y = np.where(X[:, 0] + rng.normal(size=3000) > 0, 1.0, -1.0)
    problem = fl.Problem(X, y, fl.losses.Hinge(), fl.penalties.L2(1e-9))
    for solver in ("sdca", "newton", "pdhg"):
        began = clock.now
        result = fl.solve(problem, solver=solver, tol=1e-15, max_seconds=0.3, warn=False)
        assert result.status in ("max_seconds", "stalled")
        assert clock.now - began < 1.5
        assert np.isfinite(result.certificate.gap)


def test_the_libraries_below_numpy_get_as_many_threads_as_the_run():
    """Two threads of BLAS on two busy cores made a factor of a 300 x 300 matrix a thousand times slower."""

    def most() -> int:
        return max(library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas")

    seen = []
    g = np.random.default_rng(0)
    X = g.normal(size=(300, 5))
    p = fl.Problem(X, np.sign(X[:, 0]), fl.losses.Logistic(), fl.penalties.L2(1e-3))
    with threadpool_limits(2, user_api="blas"):
        fl.solve(p, callback=lambda check: seen.append(most()))
        assert most() == 2
        fl.solver.solve_many([p] * 8, n_threads=2, callback=lambda check: seen.append(most()))
        assert most() == 2
        with pytest.raises(ZeroDivisionError):
            fl.solve(p, callback=lambda check: 1 / 0)
        assert most() == 2
    assert set(seen) == {1}


def test_the_last_run_to_end_gives_the_libraries_their_threads_back():
    def most() -> int:
        return max(library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas")

    with threadpool_limits(4, user_api="blas"):
        first, second = blas_threads(2), blas_threads(1)
        first.__enter__()
        assert most() == 2
        second.__enter__()
        first.__exit__(None, None, None)
        assert most() == 2
        second.__exit__(None, None, None)
        assert most() == 4
