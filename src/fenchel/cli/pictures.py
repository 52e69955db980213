"""Where pictures go: checked before the work that they show."""

from __future__ import annotations

from pathlib import Path

import click


def require_picture(path: Path) -> None:
    """Raise if no picture can be written there: no such folder, or a format unknown to matplotlib."""
    from matplotlib.backend_bases import FigureCanvasBase

    if not path.parent.is_dir():
        raise click.BadParameter(f"the folder {str(path.parent)!r} does not exist")
    known = FigureCanvasBase.get_supported_filetypes()
    if path.suffix.lstrip(".").lower() not in known:
        raise click.BadParameter(
            f"{path.name!r} should end in one of {', '.join('.' + ending for ending in sorted(known))}"
        )
