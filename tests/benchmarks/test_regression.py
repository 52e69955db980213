"""Two builds side by side: the rows, their ratios, and folders that hold no build."""

from __future__ import annotations

import shutil
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest
from benchmarks.regression import line, main
from benchmarks.regression_jobs import KINDS, jobs
from click.testing import CliRunner

import fenchel as fl
from fenchel._core import _portable, kernels


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """fenchel as it is here, in a folder of its own, as if it had been installed there."""
    folder = tmp_path_factory.mktemp("build")
    unwanted = shutil.ignore_patterns("__pycache__", "*.cpp", "*.hpp")
    package = shutil.copytree(Path(fl.__file__).parent, folder / "fenchel", ignore=unwanted)
    for module in (_portable, kernels):
        shutil.copy(module.__file__, package / "_core")
    return folder


def test_a_build_is_compared_with_a_copy_of_itself(build: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(build, tmp_path / "copy")
    only = "race breast_cancer ridge 1/n|fit diabetes RidgeCV|certified_path diabetes 1e-02"
    arguments = ["--old", str(build), "--new", str(copy), "--only", only, "--rounds", "2", "--pairs", "2"]
    result = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    first, _, *rows = result.output.split("\n\n")[0].splitlines()
    assert first.startswith("4 rows")
    assert len(rows) == 4
    for row in rows:
        *_, old, new, ratio, low, high, wall, rounds = row.split()
        assert rounds == "4"
        assert all(float(number) > 0.0 for number in (old, new, ratio, low, high, wall))
        assert float(low) <= float(ratio) <= float(high)
    assert "slower by more than 5 %" in result.output


def test_a_folder_without_a_build_is_an_error(build: Path, tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["--old", str(tmp_path), "--new", str(build), "--only", "RidgeCV"])
    assert result.exit_code == 1
    assert "Error" in result.output


def test_the_ratio_is_the_median_over_rounds() -> None:
    old, new = np.array([1.0, 2.0, 10.0]), np.array([1.1, 2.4, 10.0])
    found = 1e-3 * np.stack([np.column_stack([old, 3 * old]), np.column_stack([new, 3 * new])], axis=1)
    ratio, told = line("a row", found)
    assert ratio == pytest.approx(1.1)
    assert told.split()[2:] == ["2.00", "2.40", "1.100", "1.050", "1.150", "1.100", "3"]


@pytest.mark.parametrize("in_folder", [False, True])
def test_rows_have_names_of_their_own_and_sets_are_loaded_once(in_folder: bool) -> None:
    rows = jobs(in_folder)
    assert len({row.name for row in rows}) == len(rows)
    assert {row.kind for row in rows} == KINDS.keys()
    assert len([data for data, _ in groupby(row.data for row in rows)]) == len({row.data for row in rows})
