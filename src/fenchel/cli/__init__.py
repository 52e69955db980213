"""The command line; commands are imported on demand."""

from __future__ import annotations

import importlib

import click

#: Command -> module with a click command named `command`.
COMMANDS = {
    "certify": "fenchel.cli.certify",
    "demo": "fenchel.cli.demo",
    "path": "fenchel.cli.path",
    "reproduce": "fenchel.cli.reproduce",
}


class _Lazy(click.Group):
    """A group whose commands are imported on demand."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(COMMANDS[name]).command
        return command


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="fenchel")
def main(**_: object) -> None:
    """Linear models that prove how good they are."""
