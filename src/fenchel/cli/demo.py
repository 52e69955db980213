"""fenchel demo: fit, certify, draw, in half a minute."""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click
from rich.console import Console
from rich.panel import Panel
from rich.table import Table

from fenchel.certificate.certificate import percent
from fenchel.cli.pictures import require_picture
from fenchel.data.typing import Array

if TYPE_CHECKING:
    from fenchel.certificate import Certificate
    from fenchel.estimator import LinearClassifier
    from fenchel.solver import Trace


class Other(NamedTuple):
    """A model of other software: the warning of its fit, its certificate, and the seconds of its fit."""

    name: str
    warning: str
    certificate: Certificate
    seconds: float


@click.command("demo", help="Fit and certify a model, and certify scikit-learn's models.")
@click.option(
    "--picture",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("fenchel-demo.png"),
    show_default=True,
    help="Where to write the picture of the convergence.",
)
def command(picture: Path) -> None:
    import fenchel as fl
    from fenchel.data import samples

    require_picture(picture)
    console = Console()
    sample = samples.load("breast_cancer")
    X, y = sample.X, sample.y
    n, d = X.shape
    console.print(Panel.fit("[bold]fenchel[/]: linear models that prove how good they are", border_style="blue"))
    console.print(
        f"[bold]1. Fit.[/] {n} tumours, {d} measurements each, not scaled. Logistic regression with scikit-learn's "
        "default penalty (C = 1) and an unpenalised intercept, until the model is [bold]proven[/] to be within a "
        "relative 1e-9 of the optimum.\n"
    )
    model = fl.LinearClassifier(loss="logistic", tol=1e-9, progress=True).fit(X, y)
    console.print()
    console.print(Panel(str(model.certificate_), title="the certificate", title_align="left", border_style="green"))
    _explain(console, model, X)

    console.print(
        "[bold]2. Certify models of other software.[/] The certificate needs only the weights. "
        "Each model is certified for its own objective.\n"
    )
    rows = _others(X, y)
    console.print(_table(rows))
    console.print(
        "\nThe column on the right is not an estimate but a bound: no weights lower the objective by more than that.\n"
    )
    nearly_exact = fl.LinearClassifier(loss="logistic", tol=3e-11).fit(X, y)
    every_step = fl.Problem(X, 2.0 * y - 1.0, fl.losses.Logistic(), fl.penalties.L2(1.0 / n), intercept=True)
    trace = fl.solve(every_step, tol=1e-9, check_every=1).trace
    _draw(trace, nearly_exact.certificate_.primal, rows, picture)
    console.print(f"[bold]3. Draw.[/] The same fit, with a certificate after every step: [bold]{picture}[/].\n")
    console.print(
        "Next, in Python:  [cyan]import fenchel as fl; print(fl.certify(your_fitted_model, X, y))[/]", soft_wrap=True
    )


def _explain(console: Console, model: LinearClassifier, X: Array) -> None:
    labels, proven = model.predict_certified(X)
    console.print(
        f"No weights lower this objective by more than {percent(model.certificate_.relative_gap)}.\n"
        f"It follows that for [bold]{proven.sum()} of {len(labels)}[/] patients the predicted label is proven to be "
        "that of the exact optimum.\n"
    )


def _others(X: Array, y: Array) -> list[Other]:
    """scikit-learn's models on the same data."""
    from sklearn.base import clone
    from sklearn.linear_model import LogisticRegression, SGDClassifier
    from sklearn.svm import LinearSVC

    import fenchel as fl
    from fenchel.solver.blas import blas_threads

    models = {
        "LogisticRegression()": LogisticRegression(),
        "... solver='saga'": LogisticRegression(solver="saga", random_state=0),
        "... solver='newton-cholesky'": LogisticRegression(solver="newton-cholesky"),
        "LinearSVC()": LinearSVC(random_state=0),
        "SGDClassifier()": SGDClassifier(random_state=0),
    }
    rows = []
    for name, model in models.items():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("ignore")
            clone(model).fit(X[:80], y[:80])  # the first call loads code
            warnings.simplefilter("always")
            start = time.perf_counter()
            with blas_threads(1):  # as in fenchel's fit
                model.fit(X, y)
            seconds = time.perf_counter() - start
        certificate = fl.certify(model, X, y, effort="high")
        rows.append(Other(name, "did not converge" if caught else "none", certificate, seconds))
    return rows


def _table(rows: list[Other]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("scikit-learn model", no_wrap=True)
    table.add_column("warning", no_wrap=True)
    table.add_column("proven distance to its own optimum", justify="right")
    for name, warning, certificate, _ in rows:
        colour = "green" if certificate.relative_gap < 1e-3 else "yellow" if certificate.relative_gap < 0.1 else "red"
        table.add_row(name, warning, f"[{colour}]{percent(certificate.relative_gap)}[/]")
    return table


def _draw(trace: Trace, optimum: float, rows: list[Other], picture: Path) -> None:
    from fenchel.draw.paths import new_figure
    from fenchel.report import plot_convergence

    beside = [(row.name, row.certificate, row.seconds) for row in rows]
    figure = new_figure()
    plot_convergence(
        trace,
        axes=figure.add_subplot(),
        optimum=optimum,
        beside=beside,
        title="Logistic regression on 569 tumours: certified gap",
    )
    figure.savefig(picture)
