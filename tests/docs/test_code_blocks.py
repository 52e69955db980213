"""What README and documentation show runs, and prints what they say that it prints."""

import matplotlib
import pytest

from tests.docs.blocks import ROOT, agree, blocks_of, run

FILES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = [page for page in FILES if blocks_of(page.read_text())]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_blocks_run_and_print_what_the_page_says(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    matplotlib.use("Agg")
    namespace = {"__name__": "__main__"}
    for block in blocks_of(page.read_text()):
        if block.mark.startswith("skip, "):
            continue
        printed = run(block, namespace, str(page))
        if block.output is not None:
            assert agree(block.output, printed), f"{page}:{block.line} prints\n{printed}"


def test_pages_have_code_and_few_blocks_are_left_out():
    blocks = [block for page in PAGES for block in blocks_of(page.read_text())]
    assert len(blocks) > 30
    assert sum(block.mark.startswith("skip") for block in blocks) <= 7  # of packages that the tests do not install


def test_what_agrees():
    assert agree("gap 3.5e-08, by gradient\n", "gap  8e-09, by gradient")
    assert agree("[0.985 -1.972]", "[ 0.986 -1.97]")
    assert not agree("1.0 of 2", "1.1 of 2")
    assert not agree("certified", "stalled")
    assert not agree("1 2", "1")
