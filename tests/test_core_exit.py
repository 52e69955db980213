"""What the compiled module says when Python ends."""

import subprocess
import sys
import textwrap


def run(code):
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_objects_that_python_itself_keeps_to_the_end_are_not_reported():
    """The locals of a daemon thread are never freed, nor is what a kept traceback refers to."""
    said = run("""
        import threading
        import numpy as np
        import fenchel as fl

        started = threading.Event()

        def hold():
            problem = fl.Problem(np.eye(3), np.ones(3))
            started.set()
            threading.Event().wait()

        threading.Thread(target=hold, daemon=True).start()
        started.wait()
    """)
    assert said == ""


def test_a_failed_test_that_holds_a_problem_is_all_that_pytest_reports(tmp_path):
    """pytest keeps the traceback of a failure, and with it the locals, until Python ends."""
    test = """
        import numpy as np
        import fenchel as fl

        def test_fails():
            problem = fl.Problem(np.eye(3), np.ones(3), penalty=fl.penalties.L1(0.1))
            path = fl.path(problem, lams=[0.2, 0.1])
            assert path is None
    """
    (tmp_path / "test_held.py").write_text(textwrap.dedent(test))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "test_held.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert "1 failed" in done.stdout
    assert "nanobind" not in done.stdout
    assert done.stderr == ""


def test_designs_are_freed_when_their_last_owner_goes():
    """With leak reports off, reference counts are checked here."""
    said = run("""
        import gc
        import sys
        import weakref
        import numpy as np
        import fenchel as fl

        X = np.random.default_rng(0).normal(size=(20, 4))
        before = sys.getrefcount(X)
        problem = fl.Problem(X, X[:, 0], penalty=fl.penalties.L1(0.1), intercept=True)
        result = fl.solve(problem)
        result.certificate.zeros()
        assert sys.getrefcount(X) > before
        design = weakref.ref(problem.design)
        del problem, result
        gc.collect()
        assert design() is None
        assert sys.getrefcount(X) == before, sys.getrefcount(X)
    """)
    assert said == ""
