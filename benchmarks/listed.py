"""Options of a command that list several values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click
import numpy as np


class Listed(click.ParamType):
    """Values separated by commas, each of which `convert_one` understands."""

    name = "list"

    def __init__(self, convert_one: Callable[[str], Any], known: Sequence[str] = ()) -> None:
        self._convert, self._known = convert_one, known

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        if not isinstance(value, str):
            return value
        parts = [part.strip() for part in value.split(",") if part.strip()]
        if not parts:
            self.fail("nothing is listed", param, ctx)
        for part in parts:
            if self._known and part not in self._known:
                self.fail(f"{part!r} is unknown; there are {', '.join(self._known)}", param, ctx)
        try:
            return [self._convert(part) for part in parts]
        except ValueError as error:
            self.fail(str(error), param, ctx)


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value < np.inf:
        raise ValueError(f"{text} is not a positive number")
    return value


POSITIVE = Listed(_positive)
