"""Tuning constants with other values: what is read, what is told, and that the present value returns."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from benchmarks.tuning import main
from benchmarks.tuning_rows import ROWS
from benchmarks.tuning_runs import changed, compare, measure, reads
from benchmarks.tuning_table import constants, is_current, others, write, written
from click.testing import CliRunner

import fenchel as fl
from fenchel.steps.first_order import fista

#: The constants of these modules have their figures in the docstrings of their classes.
ELSEWHERE = ("steps.", "certificate.margin.")
#: The most constants that fenchel may have.
MOST = 120


def test_constants_are_few_and_each_has_a_row_with_its_value_in_the_table() -> None:
    every, rows = constants(), written(Path(__file__).parents[2] / "docs" / "performance" / "tuning.md")
    assert len(every) <= MOST
    assert rows.keys() <= {one.name for one in every}
    measured = [one for one in every if not one.name.startswith(ELSEWHERE) or one.name in rows]
    assert [one.name for one in measured if not is_current(one, rows.get(one.name, ""))] == []
    assert [name for name, row in rows.items() if "not read" in row] == []


def test_times_of_other_values_are_told_beside_the_present_one() -> None:
    arguments = [
        "steps.first_order.fista",
        "momentum_kept",
        "0.25",
        "1.0",
        "--rows",
        "^lasso (fista|approx) 500",
        "--rounds",
        "2",
    ]
    result = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    head, row, mean = result.output.splitlines()
    assert head.split() == ["momentum_kept", "=", "0.5", "ms", "0.25", "1.0"]
    assert row.startswith("lasso fista 500 x 200")  # approx does not read it
    assert all(float(number) > 0.0 for number in row.split()[-3:])
    assert mean.startswith("geometric mean of 1")
    assert fista.FISTATuning() == fista.TUNING


def test_without_values_the_rows_that_read_a_field_are_listed() -> None:
    arguments = ["steps.first_order.fista", "momentum_kept", "--rows", "^lasso (fista|approx) 500"]
    result = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert [line.split()[0] for line in result.output.splitlines()] == ["momentum_kept", "lasso", "geometric"]


def test_a_field_that_no_row_reads_is_an_error() -> None:
    result = CliRunner().invoke(
        main, ["steps.first_order.fista", "momentum_kept", "1.0", "--rows", "^lasso approx 500"]
    )
    assert result.exit_code == 1
    assert "no row with '^lasso approx 500' reads momentum_kept" in result.output


def test_an_unknown_field_is_an_error() -> None:
    result = CliRunner().invoke(main, ["steps.first_order.fista", "most", "1.0", "--rows", "lasso"])
    assert result.exit_code == 2
    assert re.search("has no most; its fields are .*momentum_kept", " ".join(result.output.split()))


def test_all_who_hold_the_constants_see_another_value_until_the_end() -> None:
    with changed(fista.TUNING, "momentum_kept", 0.7):
        assert fista.TUNING.momentum_kept == 0.7
    assert fista.FISTATuning() == fista.TUNING


def test_reading_is_seen_and_leaves_the_constants_as_they_were() -> None:
    assert reads({"fista": fista.TUNING}, lambda: fista.TUNING.momentum_kept)[1] == {("fista", "momentum_kept")}
    assert type(fista.TUNING) is fista.FISTATuning


def test_a_run_that_misses_its_tolerance_is_marked() -> None:
    X, y = np.random.default_rng(0).normal(size=(20, 5)), np.arange(20.0)
    problem = fl.Problem(X, y, fl.losses.Squared(), fl.penalties.L1(0.1))
    assert measure(lambda: fl.solve(problem, solver="fista", max_iter=1, tol=1e-9), 1).failed
    assert not measure(lambda: fl.solve(problem), 1).failed
    assert measure(lambda: fl.solve(problem).certificate, 1).gap >= 0.0


def test_a_run_without_end_is_ended_and_marked() -> None:
    def run() -> None:
        while fista.TUNING.momentum_kept > 0.5:
            pass

    found = compare(fista.TUNING, "momentum_kept", [0.6, 0.4], run, 1)
    assert found.failed.tolist() == [True, False]
    assert fista.FISTATuning() == fista.TUNING


@pytest.mark.parametrize(
    ("value", "tried"),
    [
        (3, [1, 6]),
        (0.5, [0.25, 1.0]),
        (4000, [2000, 1]),
        (2e6, [1e6, 1.0]),
        (True, [False]),
        ((8, 2.0), [(4, 1.0), (16, 4.0)]),
        ((0.3, 0.2, 0.1), [(0.3, 0.1), (0.3, 0.25, 0.2, 0.15, 0.1)]),
    ],
)
def test_other_values(value: object, tried: list[object]) -> None:
    for one, expected in zip(others(value), tried, strict=True):
        assert one == pytest.approx(expected)


PAGE = "Above.\n\n| constant | value | tried | time | gap | rows |\n|---|---|---|---|---|---|\n"


def test_the_table_of_all_constants_is_put_into_a_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        PAGE + "| `steps.none.no` | 1 | | | | |\n| `steps.first_order.approx.first_period` | 7 | | | | |\n\nBelow.\n"
    )
    arguments = ["all", "steps.first_order.fista", "--rows", "^lasso fista 500", "--rounds", "1", "--write", str(page)]
    result = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    known = written(page)
    assert list(known) == ["steps.first_order.approx.first_period", "steps.first_order.fista.momentum_kept"]
    assert "| 0.5 | 0.25 1 |" in known["steps.first_order.fista.momentum_kept"]
    assert known["steps.first_order.fista.momentum_kept"].endswith("| lasso fista 500 x 200 |")
    assert page.read_text().startswith(PAGE)
    assert page.read_text().endswith("|\n\nBelow.\n")


def test_a_row_about_another_value_is_not_current(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    kept = next(one for one in constants() if one.name == "steps.first_order.fista.momentum_kept")
    write(page, [kept], {kept.name: f"| `{kept.name}` | 0.5 | 0.25 1.0 | 1.0 1.0 |  | lasso |"})
    assert is_current(kept, written(page)[kept.name])
    with changed(kept.tuning, "momentum_kept", 0.7):
        assert not is_current(kept, written(page)[kept.name])


@pytest.mark.parametrize("name", ["hard margin", "kernel auto", "huber fit", "trend 2", "certify squared l1 0.1"])
def test_rows_run(name: str) -> None:
    assert not measure(ROWS[name](), 1).failed
