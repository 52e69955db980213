"""Tuning constants with other values: what is read, what is told, and that the present value returns."""

from __future__ import annotations

import re

import numpy as np
import pytest
from benchmarks.tuning import changed, main, measure, reads
from benchmarks.tuning_rows import ROWS
from click.testing import CliRunner

import fenchel as fl
from fenchel.steps.first_order import fista


def test_times_of_other_values_are_told_beside_the_present_one() -> None:
    arguments = [
        "steps.first_order.fista",
        "limit",
        "1.0",
        "4.0",
        "--rows",
        "^lasso (fista|approx) 500",
        "--rounds",
        "2",
    ]
    result = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    head, row, mean = result.output.splitlines()
    assert head.split() == ["limit", "=", "2.0", "ms", "1.0", "4.0"]
    assert row.startswith("lasso fista 500 x 200")  # approx does not read it
    assert all(float(number) > 0.0 for number in row.split()[-3:])
    assert mean.startswith("geometric mean of 1")
    assert fista.FISTATuning() == fista.TUNING


def test_without_values_the_rows_that_read_a_field_are_listed() -> None:
    arguments = ["steps.first_order.fista", "momentum_kept", "--rows", "^lasso (fista|approx) 500"]
    result = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert [line.split()[0] for line in result.output.splitlines()] == ["momentum_kept", "lasso", "geometric"]


def test_a_field_that_no_row_reads_is_an_error() -> None:
    result = CliRunner().invoke(main, ["steps.first_order.fista", "limit", "1.0", "--rows", "^lasso approx 500"])
    assert result.exit_code == 1
    assert "no row with '^lasso approx 500' reads limit" in result.output


def test_an_unknown_field_is_an_error() -> None:
    result = CliRunner().invoke(main, ["steps.first_order.fista", "most", "1.0", "--rows", "lasso"])
    assert result.exit_code == 2
    assert re.search("has no most; its fields are .*limit", " ".join(result.output.split()))


def test_all_who_hold_the_constants_see_another_value_until_the_end() -> None:
    with changed(fista.TUNING, "limit", 5.0):
        assert fista.TUNING.limit == 5.0
    assert fista.FISTATuning() == fista.TUNING


def test_reading_is_seen_and_leaves_the_constants_as_they_were() -> None:
    assert reads(fista.TUNING, lambda: fista.TUNING.limit) & {"limit", "momentum_kept"} == {"limit"}
    assert type(fista.TUNING) is fista.FISTATuning


def test_a_run_that_misses_its_tolerance_is_marked() -> None:
    X, y = np.random.default_rng(0).normal(size=(20, 5)), np.arange(20.0)
    problem = fl.Problem(X, y, fl.losses.Squared(), fl.penalties.L1(0.1))
    assert measure(lambda: fl.solve(problem, solver="fista", max_iter=1, tol=1e-9), 1).failed
    assert not measure(lambda: fl.solve(problem), 1).failed
    assert measure(lambda: fl.solve(problem).certificate, 1).gap >= 0.0


@pytest.mark.parametrize("name", ["hard margin", "kernel auto", "huber fit", "trend 2", "certify squared l1 0.1"])
def test_rows_run(name: str) -> None:
    assert not measure(ROWS[name](), 1).failed
