"""The race: its judge, its translations, its processes, its output."""

from __future__ import annotations

import json
import multiprocessing
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from benchmarks.datasets import A9A_ATTRIBUTES, BUILT_IN, Data, two_class
from benchmarks.entrant import LOSSES, PATH_RATIO, SPARSE, Peer, Task, half_decades
from benchmarks.installed import version
from benchmarks.judge import Reference, reference
from benchmarks.objectives import OBJECTIVES, fenchel_problems, objective, task_of
from benchmarks.peers import all_peers, fenchel_peers
from benchmarks.race import main
from benchmarks.race_report import draw, summary
from benchmarks.timing import Attempt, Entry, Row, climb, time_again
from benchmarks.worker import Worker, Workers
from click.testing import CliRunner

import fenchel as fl
from fenchel.data import samples

LEVEL = 10.0
ENTRANTS = [*fenchel_peers(["auto"]), *all_peers()]


def _sleep(task: Task) -> np.ndarray:
    if task.y.size > 50:  # not while it warms up
        time.sleep(3600)
    return np.zeros(task.X.shape[1])


def _spin(task: Task) -> np.ndarray:
    end = time.process_time() + (3600.0 if task.y.size > 50 else 0.0)
    while time.process_time() < end:
        pass
    return np.zeros(task.X.shape[1])


def _blink(task: Task) -> np.ndarray:
    end = time.thread_time() + 1e-3
    while time.thread_time() < end:
        pass
    return np.zeros(task.X.shape[1])


def _fail(task: Task) -> np.ndarray:
    raise ArithmeticError("no weights today")


SLEEPER = Peer("sleeper", "sleeper", LOSSES, _sleep, (0.1,))
SPINNER = Peer("spinner", "spinner", LOSSES, _spin, (0.1,))
BLINKER = Peer("blinker", "blinker", LOSSES, _blink, (0.1,))
FAILING = Peer("failing", "failing", LOSSES, _fail, (0.1,), compiles=True)


@pytest.fixture(scope="module", params=["dense", "sparse"])
def data(request: pytest.FixtureRequest) -> Data:
    density = 0.2 if request.param == "sparse" else None
    sample = samples.make_classification(280, 12, density=density, noise=0.5, random_state=0)
    fewer = np.flatnonzero((sample.y > 0) | (np.arange(280) % 2 > 0))  # some packages treat the mean of y differently
    return two_class(request.param, sample.X[fewer], sample.y[fewer], [1, 4, 3, 4])


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("references")


@pytest.fixture(scope="module")
def workers(data: Data) -> Iterator[Workers]:
    with Workers([*ENTRANTS, SLEEPER, SPINNER, BLINKER, FAILING], data, threads=1) as made:
        yield made


@pytest.mark.parametrize("loss", OBJECTIVES)
def test_objective_is_the_one_that_fenchel_states(data: Data, loss: str) -> None:
    task = task_of(data, loss, 0.3, 1e-4)
    W = np.random.default_rng(0).normal(size=(task.lams.size, data.X.shape[1]))
    stated = [problem.primal(w) for problem, w in zip(fenchel_problems(task), W, strict=True)]
    assert objective(task, W.ravel()) == pytest.approx(np.array(stated), rel=1e-12)


@pytest.mark.parametrize("loss", SPARSE)
def test_no_weights_are_optimal_from_the_largest_lam_on_and_not_before(data: Data, loss: str) -> None:
    first = PATH_RATIO if OBJECTIVES[loss].path else 1.0
    for level, optimal in ((first, True), (1.1 * first, False)):
        problem = next(fenchel_problems(task_of(data, loss, OBJECTIVES[loss].lam(data, level), 1e-4)))
        assert fl.certify(problem, np.zeros(12), tol=1e-9).ok == optimal


def test_a_path_goes_from_lam_max_to_a_hundredth(data: Data) -> None:
    smallest = OBJECTIVES["lasso_path"].lam(data, 100.0)
    lams = task_of(data, "lasso_path", smallest, 1e-4).lams
    assert len(lams) == 100
    assert lams[[0, -1]] == pytest.approx(OBJECTIVES["lasso"].lam(data, 1.0) * np.array([1.0, 0.01]))
    assert np.all(np.diff(lams) < 0)


def test_the_worst_point_of_a_path_counts() -> None:
    known = Reference(primal=np.array([1.0, 2.0]), dual=np.array([1.0, 2.0]))
    assert known.suboptimality(np.array([1.0, 2.2])) == pytest.approx(0.1)


@pytest.mark.parametrize("w", [np.full(12, np.nan), np.zeros(11)])
def test_weights_that_are_none_are_infinitely_bad(data: Data, w: np.ndarray) -> None:
    assert objective(task_of(data, "hinge", 1.0, 1e-4), w) == np.inf


@pytest.mark.parametrize(
    ("peer", "loss"),
    [
        pytest.param(peer, loss, id=f"{peer.name}-{loss}", marks=[pytest.mark.slow] if peer.compiles else [])
        for peer in ENTRANTS
        for loss in peer.losses
    ],
)
def test_every_peer_minimises_the_stated_objective(
    data: Data, workers: Workers, cache: Path, peer: Peer, loss: str
) -> None:
    if version(peer.package) is None:
        pytest.skip(f"{peer.package} is not installed")
    if not peer.takes(data.X, loss):
        pytest.skip("dense data only")
    stated = OBJECTIVES[loss]
    (level,) = stated.levels([LEVEL])
    lam = stated.lam(data, level)
    known = reference(data, loss, lam, cache, limit=20.0)
    assert known.relative_gap < 1e-6
    run = workers.fit(peer, loss, lam, peer.ladder[-1], limit=60.0, clock="cpu")  # others may be at work
    assert run.failure is None
    assert run.w is not None
    found = known.suboptimality(objective(task_of(data, loss, lam, 1e-4), run.w))
    assert -1e-12 < found < (1e-6 if stated.sparse else 1e-4)  # below zero by rounding only


def test_suboptimality_is_never_below_the_true_one() -> None:
    known = Reference(primal=np.array(1.0 + 1e-9), dual=np.array(1.0 - 1e-9))
    best_possible = 1.0
    for value in (known.primal, 1.01, 2.0):
        assert known.suboptimality(value) >= (value - best_possible) / best_possible


def test_reference_depends_on_the_data(data: Data, cache: Path) -> None:
    other = Data(data.name, 2.0 * data.X, data.y)
    found = [reference(one, "ridge", 0.1, cache, limit=20.0).dual for one in (data, other, data)]
    assert found[0] != found[1]
    assert found[0] == found[2]


def test_a_fit_that_does_not_return_is_ended_and_the_next_one_runs(data: Data, workers: Workers) -> None:
    run = workers.fit(SLEEPER, "hinge", 0.1, 0.1, limit=0.3)
    assert run.failure == "over the limit"
    assert workers.fit(SLEEPER, "hinge", 0.1, 0.1, limit=0.3).failure == "over the limit"


def test_a_fit_past_its_processor_time_is_ended(workers: Workers) -> None:
    run = workers.fit(SPINNER, "hinge", 0.1, 0.1, limit=0.3, clock="cpu")
    assert run.failure == "over the limit"
    assert workers.fit(SLEEPER, "hinge", 0.1, 0.1, limit=0.01, clock="cpu").failure == "over the limit"


def test_a_millisecond_of_processor_time_is_counted_also_under_a_limit(workers: Workers) -> None:
    """Not in the kernel's ticks of 4 ms: of many fits at least one is shorter, however busy the machine."""
    found = [workers.fit(BLINKER, "hinge", 0.1, 0.1, limit=10.0, clock="cpu").cpu for _ in range(30)]
    assert 1e-3 <= min(found) < 4e-3


@pytest.mark.skipif(not Path("/proc").exists(), reason="asks /proc")
def test_a_worker_ends_with_the_race(data: Data) -> None:
    """A race that is killed leaves no process behind, not even one in the middle of a fit."""
    context = multiprocessing.get_context("fork")
    receive, send = context.Pipe(duplex=False)

    def race() -> None:
        worker = Worker({SLEEPER.name: SLEEPER}, data, threads=1)
        send.send(worker.pid)
        worker.fit(SLEEPER, "hinge", 0.1, 0.1, limit=60.0)

    process = context.Process(target=race)
    with warnings.catch_warnings():  # newer Pythons warn of threads, which the race does not need
        warnings.simplefilter("ignore", DeprecationWarning)
        process.start()
    pid = receive.recv()
    time.sleep(0.5)
    process.kill()
    process.join()
    deadline = time.monotonic() + 20.0
    while _runs(pid) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not _runs(pid)


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_fit_that_raises_says_why(data: Data, workers: Workers) -> None:
    run = workers.fit(FAILING, "hinge", 0.1, 0.1, limit=10.0)
    assert run.w is None
    assert run.failure == "ArithmeticError: no weights today"


def test_climb_finds_the_quickest_rung_that_reaches_each_target() -> None:
    tried: list[float] = []

    def attempt(tol: float) -> Attempt:
        tried.append(tol)
        return Attempt(tol, seconds=1.0 / tol, suboptimality=tol)

    ladder = half_decades(1.0, 1e-8)
    found = climb(ladder, [1e-3, 1e-6], attempt)
    assert {target: one.tol for target, one in found.items()} == {1e-3: 1e-3, 1e-6: 1e-6}
    assert len(tried) == len(set(tried))
    assert min(tried) == 1e-6


def test_climb_stops_where_a_fit_fails() -> None:
    def attempt(tol: float) -> Attempt:
        return Attempt(tol, 1.0, tol) if tol > 1e-4 else Attempt(tol, np.inf, np.inf, "over the limit")

    found = climb(half_decades(1.0, 1e-8), [1e-3, 1e-6], attempt)
    assert found[1e-3].failure is None
    assert found[1e-6].failure == "over the limit"


def test_climb_reports_the_top_of_the_ladder_where_no_rung_reaches() -> None:
    found = climb((1.0, 0.1, 0.01), [1e-6], lambda tol: Attempt(tol, 1.0, tol))
    assert found[1e-6].suboptimality == 0.01


def test_a_timed_run_that_misses_the_target_goes_on_to_the_next_rung() -> None:
    peer = Peer("random", "random", LOSSES, _fail, (1.0, 0.1, 0.01))
    lucky, plain = Entry("random", "random", tol=1.0), Entry("random", "random", tol=0.1)
    tried: list[float] = []

    def attempt(peer: Peer, tol: float) -> Attempt:
        tried.append(tol)
        return Attempt(tol, seconds=1.0 / tol, suboptimality=tol)

    time_again(peer, [(lucky, 0.5), (plain, 0.2)], attempt)
    assert lucky.tol == plain.tol == 0.1
    assert lucky.seconds == plain.seconds == [10.0]
    assert tried == [1.0, 0.1]


def _row(ours: list[float], theirs: list[float]) -> Row:
    entries = [Entry("fenchel auto", "fenchel", seconds=ours), Entry("peer", "peer", seconds=theirs)]
    return Row("set", "hinge", "1/n", 1e-3, 1e-9, entries)


def test_summary_counts_medians(tmp_path: Path) -> None:
    rows = [_row([1.0, 9.0, 1.0], [2.0]), _row([1.0], [1.5]), _row([1.0], [0.5]), _row([1.0], []), _row([], [1.0])]
    assert [row.ratio for row in rows] == [2.0, 1.5, 0.5, np.inf, 0.0]
    assert "first in 3 of 5 rows" in summary(rows)
    assert "time in 2 rows" in summary(rows)
    draw(tmp_path / "race.png", rows)
    assert (tmp_path / "race.png").stat().st_size > 0


def test_race_prints_and_writes_what_it_found(tmp_path: Path) -> None:
    command = "--sets breast_cancer --losses ridge --lams 10 --targets 1e-2 --repeats 2 --peers cholesky --out"
    result = CliRunner().invoke(main, [*command.split(), str(tmp_path)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert "of 1 rows" in result.output
    record = json.loads((tmp_path / "race.json").read_text())
    (row,) = record["rows"]
    assert row["solvers"].keys() == {"fenchel auto", "Ridge cholesky"}
    assert all(len(one["seconds"]) == 2 and one["suboptimality"] <= 1e-2 for one in row["solvers"].values())
    assert str(tmp_path) not in json.dumps(record)
    assert (tmp_path / "race.png").exists()


def test_sparse_race_has_a_row_for_every_lam_and_one_for_a_path(tmp_path: Path) -> None:
    command = "--sparse --sets wide --losses lasso,group_lasso,lasso_path --lams 2,5 --targets 1e-2 --repeats 1"
    arguments = [*command.split(), "--peers", "coordinate descent", "--out", str(tmp_path)]
    result = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert "wide has no groups: group_lasso is left out" in result.output
    rows = json.loads((tmp_path / "race.json").read_text())["rows"]
    assert [(row["loss"], row["lam"]) for row in rows] == [
        ("lasso", "max/2"),
        ("lasso", "max/5"),
        ("lasso_path", "max..max/100"),
    ]
    for row in rows:
        assert row["reference_gap"] < 1e-4
        found = {name: one["suboptimality"] for name, one in row["solvers"].items()}
        assert found["fenchel auto"] <= 1e-2
        assert "coordinate descent" in found
        assert all(one is None or one <= 1e-2 for one in found.values())  # None: ten times slower than the best


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("--losses cube", "'cube' is unknown; there are hinge"),
        ("--losses lasso", "lasso: only with --sparse"),
        ("--sparse --losses hinge", "hinge: not with --sparse"),
        ("--sparse --losses lasso_path --lams 10", "--lams has no effect on paths"),
        ("--lams 0", "0 is not a positive number"),
        ("--targets ,", "nothing is listed"),
        ("--sets imdb", "--data-dir"),
        ("--peers nobody", "no peer has 'nobody'"),
        ("--fenchel guess", "'guess' is unknown; there are auto"),
        ("--format csv", "--data, which is missing"),
    ],
)
def test_race_says_what_is_wrong_with_an_argument(tmp_path: Path, command: str, message: str) -> None:
    result = CliRunner().invoke(main, [*command.split(), "--out", str(tmp_path)])
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())


@pytest.mark.parametrize("name", BUILT_IN)
def test_built_in_sets_have_two_classes(name: str) -> None:
    assert set(BUILT_IN[name]().y) == {-1.0, 1.0}


def test_columns_of_an_attribute_exclude_each_other() -> None:
    data = BUILT_IN["attributes"]()
    values = np.bincount(data.groups[data.X.indices] + (data.groups.max() + 1) * np.repeat(np.arange(3000), 20))
    assert values.min() == values.max() == 1
    assert sum(A9A_ATTRIBUTES) == 123


def test_more_than_two_classes_are_refused() -> None:
    with pytest.raises(ValueError, match="3 classes; the race needs two"):
        two_class("three", np.eye(3), np.array([0, 1, 2]))
