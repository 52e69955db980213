"""fenchel demo: what this package is for, in half a minute."""

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
    """A model of other software: what its fit said, its certificate, and the seconds of its fit."""

    name: str
    said: str
    certificate: Certificate
    seconds: float


@click.command("demo", help="Fit a model, prove how good it is, and ask the same of scikit-learn's models.")
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
        f"[bold]1. Fit.[/] {n} tumours, {d} measurements each, as they come: nothing is scaled. Logistic regression "
        "with scikit-learn's default penalty (C = 1), an intercept that is not penalised, and a tolerance that means "
        "something: stop when the model is [bold]proven[/] to be within one part in a billion of the best one.\n"
    )
    model = fl.LinearClassifier(loss="logistic", tol=1e-9, progress=True).fit(X, y)
    console.print()
    console.print(Panel(str(model.certificate_), title="the certificate", title_align="left", border_style="green"))
    _explain(console, model, X)

    console.print(
        "[bold]2. Ask the same of other software.[/] The certificate needs only the weights. "
        "Each model is judged by the objective that it claims to minimise.\n"
    )
    rows = _others(X, y)
    console.print(_table(rows))
    console.print(
        "\n[bold]Read it like this:[/] the column on the right is no estimate. No weights, however they are found, "
        "are better by more than that.\nA warning tells you to worry, silence tells you nothing, a certificate tells "
        "you how much.\n"
    )
    nearly_exact = fl.LinearClassifier(loss="logistic", tol=3e-11).fit(X, y)
    every_step = fl.Problem(X, 2.0 * y - 1.0, fl.losses.Logistic(), fl.penalties.L2(1.0 / n), intercept=True)
    trace = fl.solve(every_step, tol=1e-9, check_every=1).trace
    _draw(trace, nearly_exact.certificate_.primal, rows, picture)
    console.print(f"[bold]3. See it.[/] The same fit, with a certificate after every step, is in [bold]{picture}[/].\n")
    console.print(
        "Next, in Python:  [cyan]import fenchel as fl; print(fl.certify(your_fitted_model, X, y))[/]", soft_wrap=True
    )


def _explain(console: Console, model: LinearClassifier, X: Array) -> None:
    labels, proven = model.predict_certified(X)
    console.print(
        "In words: no weights lower this objective by more than "
        f"{percent(model.certificate_.relative_gap)} of it, not with more time, not with another solver.\n"
        f"And what follows: for [bold]{proven.sum()} of {len(labels)}[/] patients the predicted label is proven to be "
        "the one that the exact optimum predicts.\n"
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
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("ignore")
            clone(model).fit(X[:80], y[:80])  # a first call loads code; that is not the model's time
            warnings.simplefilter("always")
            start = time.perf_counter()
            with blas_threads(1):  # as our own fit
                model.fit(X, y)
            seconds = time.perf_counter() - start
        certificate = fl.certify(model, X, y, effort="high")
        rows.append(Other(name, "did not converge" if said else "nothing", certificate, seconds))
    return rows


def _table(rows: list[Other]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("scikit-learn model", no_wrap=True)
    table.add_column("what it said", no_wrap=True)
    table.add_column("proven distance to its own optimum", justify="right")
    for name, said, certificate, _ in rows:
        colour = "green" if certificate.relative_gap < 1e-3 else "yellow" if certificate.relative_gap < 0.1 else "red"
        table.add_row(name, said, f"[{colour}]{percent(certificate.relative_gap)}[/]")
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
        title="Logistic regression on 569 tumours: what is proven, and when",
    )
    figure.savefig(picture)
