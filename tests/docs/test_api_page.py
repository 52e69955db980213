"""The API page has every public name, and the help text as it is."""

import re
import runpy

import pytest
from click.testing import CliRunner

import fenchel
from fenchel import steps
from fenchel.cli import main
from tests.docs.blocks import ROOT

PAGE = (ROOT / "docs/api.md").read_text()
#: modules: their members are listed one by one
MODULES = {"kernel", "losses", "penalties", "sets", "theory"}


@pytest.mark.parametrize("name", sorted(set(fenchel.__all__) - MODULES))
def test_every_public_name_is_on_the_page(name):
    assert re.search(rf"^::: fenchel\.(\w+\.)*{name}$", PAGE, re.M)


@pytest.mark.parametrize("module", ["losses", "penalties"])
def test_every_loss_and_penalty_is_on_the_page(module):
    assert [name for name in getattr(fenchel, module).__all__ if not re.search(rf"\b{name}\b", PAGE)] == []


def test_every_solver_is_on_the_page():
    names = [name for name in steps.__all__ if issubclass(getattr(steps, name), steps.Solver)]
    assert [name for name in names if f"::: fenchel.steps.{name}\n" not in PAGE] == []


def test_docstrings_are_shown_as_they_are():
    pytest.importorskip("griffe")
    as_markdown = runpy.run_path(str(ROOT / "docs/griffe_documented.py"))["as_markdown"]
    shown = as_markdown(
        "With R*(V) >= <B, V> and `a * b`::\n\n    P* = <x>\n\nMinimises ::\n\n    |w|*\n\n"
        "Parameters\n----------\n**options\n    Of R*.\n\n    Of <V>.\n\nExamples\n--------\n>>> 2 * 3\n6"
    )
    assert shown == (
        "With R\\*(V) >= &lt;B, V> and `a * b`:\n\n    P* = <x>\n\nMinimises\n\n    |w|*\n\n"
        "Parameters\n----------\n**options\n    Of R\\*.\n\n    Of &lt;V>.\n\nExamples\n--------\n>>> 2 * 3\n6"
    )


def test_the_help_text_is_that_of_the_command():
    shown = PAGE.partition("$ fenchel --help\n")[2].partition("```")[0]
    assert CliRunner().invoke(main, ["--help"], prog_name="fenchel").output.split() == shown.split()
