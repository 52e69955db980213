"""Many threads at a time, with data between them; and a core without state."""

import re
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import fenchel as fl
from fenchel.problem.losses import Hinge, Huber, Logistic, Multinomial, Squared
from fenchel.problem.penalties import L1, L2, ElasticNet

ROOT = Path(fl.__file__).parents[2]
rng = np.random.default_rng(0)
X = rng.normal(size=(300, 40))
SCORE = X @ rng.normal(size=40) + rng.normal(size=300)
SIGN = np.where(SCORE > 0, 1.0, -1.0)
COUNT = 8


def at_once(tasks):
    """The results of functions that start together."""
    barrier = threading.Barrier(len(tasks))

    def run(task):
        barrier.wait()
        return task()

    with ThreadPoolExecutor(len(tasks)) as pool:
        return [future.result() for future in [pool.submit(run, task) for task in tasks]]


def problems_of(design):
    return [
        fl.Problem(design, SIGN, Hinge(), L2(1e-2)),
        fl.Problem(design, SIGN, Logistic(), L1(1e-2), intercept=True),
        fl.Problem(design, SCORE, Squared(), L1(1e-1)),
        fl.Problem(design, SCORE, Squared(), ElasticNet(1e-1, 0.5), intercept=True),
        fl.Problem(design, SCORE, Huber(1.0), L2(1e-2), intercept=True),
        fl.MulticlassProblem(design, (SCORE > 0).astype(int) + (SCORE > 3), Multinomial(), L2(1e-2)),
    ]


@pytest.mark.parametrize("form", [np.asarray, np.asfortranarray, sp.csr_array, sp.csc_array, np.float32])
def test_solves_that_share_a_design_are_those_of_one_thread(form):
    data = form(X)
    alone = [fl.solve(problem) for problem in problems_of(fl.Design(data))]
    shared = problems_of(fl.Design(data)) * 2
    together = at_once([lambda problem=problem: fl.solve(problem) for problem in shared])
    for one, other in zip(alone * 2, together, strict=True):
        assert np.array_equal(one.w, other.w)
        assert one.certificate.gap == other.certificate.gap


def test_certificates_of_one_problem_in_many_threads_are_equal():
    problem = problems_of(fl.Design(X))[0]
    result = fl.solve(problem, tol=1e-2)
    found = at_once([lambda: fl.certify(problem, result.w)] * COUNT)
    assert len({c.gap for c in found}) == 1
    marks = at_once([lambda: result.certificate.labels(X)[1]] * COUNT)
    assert all(np.array_equal(marks[0], each) for each in marks)


@pytest.mark.parametrize(
    "model",
    [fl.LogisticRegression(), fl.LinearSVC(n_threads=2), fl.LassoCV(alphas=5, cv=3, n_jobs=2), fl.Ridge()],
    ids=str,
)
def test_models_fitted_in_threads_are_those_of_one(model):
    def fitted():
        return type(model)(**model.get_params()).fit(X, SIGN)

    alone, together = fitted(), at_once([fitted] * COUNT)
    for each in together:
        np.testing.assert_allclose(each.coef_, alone.coef_, rtol=0, atol=1e-12)
    predictions = at_once([lambda: alone.predict(X)] * COUNT)
    assert all(np.array_equal(predictions[0], each) for each in predictions)


@pytest.mark.skipif(not (ROOT / "CMakeLists.txt").exists(), reason="needs the source tree")
def test_the_core_has_no_variables_outside_of_functions_and_none_that_outlive_a_call():
    assert "FREE_THREADED" in (ROOT / "CMakeLists.txt").read_text()
    core = ROOT / "src/fenchel/_core"
    sources = [*core.rglob("*.hpp"), *core.rglob("*.cpp")]
    assert len(sources) > 30
    for path in sources:
        for line in re.sub(r"//.*|/\*.*?\*/", "", path.read_text()).splitlines():
            assert not is_state(line), (path.name, line)


def is_state(line):
    """A static variable, one of a thread, or one of the file."""
    static = re.search(r"\bstatic\b(?! (inline )?const)[^()]*[;=]", line)
    of_file = re.match(r"(inline )?(?!using|namespace|return|typedef|.*\bconst)\w[\w:<>, ]* \w+( = .*|\{.*\})?;", line)
    return bool(static or of_file or "thread_local" in line)


@pytest.mark.parametrize(
    ("line", "is_one"),
    [
        ("int counter = 0;", True),
        ("inline std::vector<double> table{};", True),
        ("    static double last = 0;", True),
        ("thread_local int depth;", True),
        ("    double sum = 0;", False),
        ("inline constexpr int width = 8;", False),
        ("    static constexpr int width = 8;", False),
        ("    static double level(double z) { return z; }", False),
        ("using Index = std::ptrdiff_t;", False),
    ],
)
def test_state_is_recognised(line, is_one):
    assert is_state(line) == is_one
