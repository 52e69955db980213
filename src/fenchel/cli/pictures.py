"""Checks of output files for pictures."""

from __future__ import annotations

from pathlib import Path

import click


def require_picture(path: Path) -> None:
    """Raise if the folder does not exist, or matplotlib does not know the format."""
    from matplotlib.backend_bases import FigureCanvasBase

    if not path.parent.is_dir():
        raise click.BadParameter(f"the folder {str(path.parent)!r} does not exist")
    known = FigureCanvasBase.get_supported_filetypes()
    if path.suffix.lstrip(".").lower() not in known:
        raise click.BadParameter(
            f"{path.name!r} should end in one of {', '.join('.' + ending for ending in sorted(known))}"
        )
