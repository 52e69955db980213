"""fenchel path: models along lam, on a grid or proven for every lam."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import numpy as np

from fenchel.cli.pictures import require_picture

LOSSES = ("squared", "logistic", "huber", "squared_hinge", "smoothed_hinge", "hinge", "absolute")
PENALTIES = ("l1", "elastic_net", "l2")
FORMAT = "fenchel-path-1"


@click.command("path", help="Fit and certify models along lam: on a grid, or with --certified at every lam.")
@click.argument("data", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--loss", type=click.Choice(LOSSES), default="squared", show_default=True)
@click.option("--penalty", type=click.Choice(PENALTIES), default="l1", show_default=True)
@click.option("--l1-ratio", type=float, default=None, help="Of the elastic net.  [default: 0.5]")
@click.option(
    "--intercept/--no-intercept", default=True, show_default=True, help="Whether to fit one; it is not penalised."
)
@click.option("--certified", is_flag=True, help="Prove one of the models eps-optimal at every lam.")
@click.option(
    "--eps", type=float, default=None, help="With --certified: the relative gap at every lam.  [default: 1e-3]"
)
@click.option(
    "--tol", type=float, default=None, help="Without --certified: the relative gap at each lam.  [default: 1e-4]"
)
@click.option(
    "--n-lams",
    type=click.IntRange(min=1),
    default=None,
    help="Without --certified: how many lams.  [default: 100]",
)
@click.option("--lam-max", type=float, default=None, help="The largest lam.  [default: where all weights are zero]")
@click.option("--lam-min", type=float, default=None, help="The smallest lam.  [default: lam-max / 100]")
@click.option("--format", "format_", default=None, help="Of the data; by default from the file's name.")
@click.option("--target", default=None, help="The column of a table with the targets; the last by default.")
@click.option("--max-seconds", type=float, default=None, help="For all solves.")
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    default=None,
    help="Where to write the models: .npz or .json.",
)
@click.option("--picture", type=click.Path(dir_okay=False, path_type=Path), default=None, help="Where to draw them.")
@click.option("--quiet", is_flag=True, help="No progress bar.")
def command(data: Path, output: Path | None, picture: Path | None, **settings: Any) -> None:
    if picture is not None:
        require_picture(picture)
    if output is not None and (output.suffix not in (".npz", ".json") or not output.parent.is_dir()):
        raise click.UsageError(f"--output should be a file .npz or .json in a folder that exists; got {output}")
    try:
        found = _find(data, settings)
    except (ValueError, TypeError, OSError, ImportError) as error:
        raise click.UsageError(str(error)) from error
    click.echo(str(found))
    if output is not None:
        _write(found, output)
        click.echo(f"models: {output}")
    if picture is not None:
        drawn = found.plot(title=f"{data.name}: {settings['loss']} loss, {settings['penalty']} penalty")
        getattr(drawn, "figure", drawn).savefig(picture)
        click.echo(f"picture: {picture}")
    if not _proven(found):
        click.echo("The tolerance was not reached; increase --tol, --eps or --max-seconds.", err=True)
        raise SystemExit(1)


def _find(data: Path, settings: dict[str, Any]) -> Any:
    """The path for these settings."""
    import fenchel as fl
    from fenchel.solver.paths.grid import largest_lam

    certified = settings["certified"]
    for name in ("tol", "n_lams") if certified else ("eps",):
        if settings[name] is not None:
            raise ValueError(
                f"--{name.replace('_', '-')} has no effect {'with' if certified else 'without'} --certified"
            )
    problem = _problem(data, settings)
    lam_max, lam_min = settings["lam_max"], settings["lam_min"]
    lam_max = largest_lam(problem, "--lam-max and --lam-min") if lam_max is None else lam_max
    lam_min = lam_max / 100 if lam_min is None else lam_min
    if not 0 < lam_min < lam_max < np.inf:
        raise ValueError(f"0 < lam-min < lam-max must hold, got {lam_min:g} and {lam_max:g}")
    options = {"max_seconds": settings["max_seconds"], "progress": not settings["quiet"], "warn": False}
    if certified:
        eps = 1e-3 if settings["eps"] is None else settings["eps"]
        return fl.certified_path(problem, lam_min, lam_max, eps, **options)
    count, tol = settings["n_lams"] or 100, 1e-4 if settings["tol"] is None else settings["tol"]
    return fl.path(problem, np.geomspace(lam_max, lam_min, count), tol=tol, **options)


def _problem(data: Path, settings: dict[str, Any]) -> Any:
    import fenchel as fl
    from fenchel.data import encode_labels
    from fenchel.estimator.names import LOSSES as KINDS

    target = {} if settings["target"] is None else {"target": settings["target"]}
    X, y = fl.read(data, format=settings["format_"], **target)
    if y is None:
        raise ValueError(f"{data} has no targets")
    loss = KINDS[settings["loss"]]()
    if loss.is_classification:
        classes, codes = encode_labels(y)
        if len(classes) > 2:
            raise ValueError(f"y has {len(classes)} classes; a path needs two")
        y = 2.0 * codes - 1.0
    return fl.Problem(X, y, loss, _penalty(settings), intercept=settings["intercept"])


def _penalty(settings: dict[str, Any]) -> Any:
    import fenchel as fl

    name, ratio = settings["penalty"], settings["l1_ratio"]
    if name == "elastic_net":
        return fl.penalties.ElasticNet(1.0, 0.5 if ratio is None else ratio)
    if ratio is not None:
        raise ValueError("--l1-ratio is for --penalty elastic_net")
    return fl.penalties.L1(1.0) if name == "l1" else fl.penalties.L2(1.0)


def _proven(found: Any) -> bool:
    """Whether the tolerance is reached everywhere."""
    complete = getattr(found, "complete", None)
    return bool(all(certificate.ok for certificate in found.certificates) if complete is None else complete)


def _write(found: Any, output: Path) -> None:
    """Write the models: arrays in an .npz, or the nonzero weights in a .json."""
    columns = _columns(found)
    if output.suffix == ".npz":
        np.savez_compressed(output, coef=found.coefs.T, **columns)
        return
    models = []
    for k, w in enumerate(found.coefs.T):
        index = np.flatnonzero(w)
        numbers = {name: values[k].item() for name, values in columns.items()}
        models.append({**numbers, "index": index.tolist(), "weight": w[index].tolist()})
    eps = {"eps": found.eps} if hasattr(found, "eps") else {}
    output.write_text(json.dumps({"format": FORMAT, **eps, "models": models}, indent=1) + "\n")


def _columns(found: Any) -> dict[str, Any]:
    """Numbers of each model beside its weights."""
    columns = {"lam": found.lams, "intercept": found.intercepts}
    if hasattr(found, "knots"):
        columns |= {name: np.array([getattr(knot, name) for knot in found]) for name in ("low", "high", "solved")}
    for name in ("primal", "gap"):
        columns[name] = np.array([getattr(model.certificate, name) for model in found])
    return columns
