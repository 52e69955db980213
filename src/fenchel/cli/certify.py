"""fenchel certify: the certificate of a model file."""

from __future__ import annotations

import sys
from pathlib import Path

import click


@click.command("certify", help="Certify a LIBLINEAR model file on its training data.")
@click.argument("model", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("data", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--C", "C", type=float, required=True, help="The C that the model was trained with; the file does not store it."
)
@click.option("--epsilon", type=float, default=None, help="The -p of support vector regression.")
@click.option("--format", "format_", default=None, help="Of the data; by default from the file's name.")
@click.option("--effort", type=click.Choice(["low", "auto", "high"]), default="auto", show_default=True)
@click.option(
    "--tol",
    type=float,
    default=None,
    help="Tolerance for the relative gap; exit status 1 if it is not reached, 2 for an error.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    model: Path,
    data: Path,
    C: float,
    epsilon: float | None,
    format_: str | None,
    effort: str,
    tol: float | None,
    as_json: bool,
) -> None:
    import fenchel as fl

    options = {"C": C} if epsilon is None else {"C": C, "epsilon": epsilon}
    try:
        X, y = fl.read(data, format=format_)
        if y is None:
            raise ValueError(f"{data} has no targets")
        certificate = fl.certify(str(model), X, y, effort=effort, tol=tol, **options)
    except (ValueError, TypeError, OSError) as error:
        raise click.UsageError(str(error)) from error
    click.echo(certificate.to_json() if as_json else str(certificate))
    sys.exit(0 if certificate.ok else 1)
