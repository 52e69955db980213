"""The Python blocks of a page, run in order, and what the page says that they print.

A ```python block is run; all blocks of a page share one namespace. A ```text block that follows it is what it prints.
A comment of one line right before a block says what is different about it:

    <!-- test: skip, needs torch -->      it is not run, and neither is what follows it compared
    <!-- test: raises TypeError -->       it must raise this; its ```text block is the message

Words must be the same. Numbers must agree to 5 %, or both be below 0.01: gaps and roundings depend on the machine.

`python -m tests.docs.blocks PAGE...` writes into pages what their blocks print now, where the two do not agree.
"""

import contextlib
import io
import itertools
import re
import sys
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^(?:<!-- test: (?P<mark>.*?) -->\n)?^```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.M | re.S)
NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?")


@dataclass(frozen=True)
class Block:
    """A block of code: what it should print (None: anything), and where that stands in the page."""

    code: str
    line: int
    mark: str
    output: str | None
    span: tuple[int, int] | None


def blocks_of(page: str) -> list[Block]:
    """The Python blocks of a page, each with the text block that follows it before any other prose."""
    found = list(FENCE.finditer(page))
    blocks = []
    for here, after in itertools.pairwise([*found, None]):
        if here["kind"] != "python":
            continue
        follows = after is not None and after["kind"] == "text" and not page[here.end() : after.start()].strip()
        blocks.append(
            Block(
                here["text"],
                page.count("\n", 0, here.start("text")) + 1,
                here["mark"] or "",
                after["text"] if follows else None,
                after.span("text") if follows else None,
            )
        )
    return blocks


def run(block: Block, namespace: dict[str, object], name: str) -> str:
    """What a block prints, or the message of the error that its mark promises."""
    # blank lines in front, so that a traceback has the page's line numbers
    code = compile("\n" * (block.line - 1) + block.code, name, "exec")
    out = io.StringIO()
    with contextlib.redirect_stdout(out), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if not block.mark:
            exec(code, namespace)
            return out.getvalue()
        expected = block.mark.removeprefix("raises ")
        try:
            exec(code, namespace)
        except Exception as error:
            if type(error).__name__ != expected:
                raise
            return f"{expected}: {error}\n"
    raise AssertionError(f"{name}:{block.line} did not raise {expected}")


def agree(expected: str, found: str) -> bool:
    """Whether two texts have the same words, and numbers that are near to each other."""
    words = ["".join(NUMBER.sub("0", text).split()) for text in (expected, found)]
    numbers = [[float(number) for number in NUMBER.findall(text)] for text in (expected, found)]
    near = all(
        abs(a - b) <= 0.05 * max(abs(a), abs(b)) or max(abs(a), abs(b)) < 0.01 for a, b in zip(*numbers, strict=False)
    )
    return words[0] == words[1] and near


def main(pages: list[str]) -> None:
    """Bring the outputs of pages up to date."""
    for name in pages:
        path = Path(name).resolve()
        page, namespace, edits = path.read_text(), {"__name__": "__main__"}, []
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            for block in blocks_of(page):
                if block.mark.startswith("skip"):
                    continue
                printed = run(block, namespace, name)
                if block.output is not None and not agree(block.output, printed):
                    edits.append((block.span, printed))
        for (start, end), printed in reversed(edits):
            page = page[:start] + printed.rstrip("\n") + "\n" + page[end:]
        path.write_text(page)
        print(f"{name}: {len(edits)} outputs changed")


if __name__ == "__main__":
    main(sys.argv[1:])
