"""The command line, as typed."""

import json
from itertools import pairwise

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.datasets import dump_svmlight_file, load_breast_cancer
from sklearn.preprocessing import scale
from sklearn.svm import LinearSVC

from fenchel.cli import main
from fenchel.report import plot_convergence
from tests.certificate.test_adapters_svm import write


def run(*arguments):
    return CliRunner().invoke(main, [str(a) for a in arguments])


def test_help_lists_the_commands():
    result = run("--help")
    assert result.exit_code == 0
    assert "certify" in result.output
    assert "demo" in result.output
    assert run("nonsense").exit_code == 2


def test_the_demo_fits_proves_compares_and_draws(tmp_path):
    picture = tmp_path / "demo.png"
    result = run("demo", "--picture", picture)
    assert result.exit_code == 0, result.output
    assert "Certified: no model lowers the objective by more than" in result.output
    assert "LogisticRegression()" in result.output
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.fixture
def model_and_data(tmp_path):
    X, y = load_breast_cancer(return_X_y=True)
    X = scale(X)
    model = LinearSVC(C=0.5, tol=1e-8, max_iter=100_000).fit(X, y)
    dump_svmlight_file(X, y, str(tmp_path / "data.svm"), zero_based=False)
    w = -np.append(model.coef_[0], model.intercept_[0])[:, None]  # LIBLINEAR's first label is the positive one
    return write(tmp_path / "model", "L2R_L2LOSS_SVC_DUAL", w, 1, labels=[0, 1]), tmp_path / "data.svm"


def test_a_model_file_is_certified(model_and_data):
    model, data = model_and_data
    result = run("certify", model, data, "--C", 0.5)
    assert result.exit_code == 0, result.output
    assert result.output.startswith("Certified:")
    found = json.loads(run("certify", model, data, "--C", 0.5, "--json").output)
    assert 0 < found["relative_gap"] < 1e-4


def test_a_model_that_is_not_good_enough_gives_exit_status_1(model_and_data):
    model, data = model_and_data
    result = run("certify", model, data, "--C", 50)
    assert result.exit_code == 1
    assert result.output.startswith("Not certified")


def test_mistakes_are_explained(model_and_data, tmp_path):
    model, data = model_and_data
    assert "Missing option '--C'" in run("certify", model, data).output
    broken = tmp_path / "broken.svm"
    broken.write_text("1 1:2\n0 2:x\n")
    result = run("certify", model, broken, "--C", 1)
    assert result.exit_code == 2
    assert "line 2" in result.output
    assert "Traceback" not in result.output


def test_plots_draw_on_given_axes():
    from matplotlib.figure import Figure

    import fenchel as fl

    rng = np.random.default_rng(0)
    problem = fl.Problem(rng.normal(size=(60, 5)), rng.normal(size=60), fl.losses.Huber(), fl.penalties.L1(0.01))
    traces = {solver: fl.solve(problem, solver=solver, tol=1e-8).trace for solver in ("fista", "pdhg")}
    axes = Figure().add_subplot()
    assert plot_convergence(traces, title="two solvers", axes=axes) is axes
    assert axes.get_title() == "two solvers"
    assert len(axes.lines) == 2


def test_a_picture_that_cannot_be_written_is_said_before_the_work(tmp_path):
    for path, message in ((tmp_path / "nowhere" / "a.png", "does not exist"), (tmp_path / "a.foo", "should end in")):
        for command in (("demo", "--picture"), ("reproduce", "sdca", "--figure", "1", "--output")):
            result = run(*command, path)
            assert result.exit_code == 2
            assert message in " ".join(result.output.split())


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(80, 6))
    y = X[:, 0] - 2.0 * X[:, 1] + 0.5 * rng.normal(size=80) + 3.0
    path = tmp_path / "table.svm"
    dump_svmlight_file(X, y, str(path), zero_based=False)
    return path


def test_a_certified_path_is_printed_written_and_drawn(table, tmp_path):
    picture, output = tmp_path / "path.png", tmp_path / "path.json"
    result = run("path", table, "--certified", "--eps", 0.01, "--output", output, "--picture", picture, "--quiet")
    assert result.exit_code == 0, result.output
    assert result.output.startswith("For every lam from")
    assert picture.read_bytes().startswith(b"\x89PNG")
    found = json.loads(output.read_text())
    models = found["models"]
    assert found["eps"] == 0.01
    assert all(above["low"] == below["high"] for above, below in pairwise(models))
    assert models[-1]["low"] == pytest.approx(models[0]["high"] / 100)
    assert set(models[-1]["index"]) >= {0, 1}


def test_a_path_on_a_grid_is_written_as_arrays(table, tmp_path):
    output = tmp_path / "path.npz"
    result = run("path", table, "--penalty", "elastic_net", "--n-lams", 7, "--tol", 1e-6, "--output", output)
    assert result.exit_code == 0, result.output
    with np.load(output) as found:
        assert found["coef"].shape == (7, 6)
        assert np.all(found["gap"] <= 1e-6 * found["primal"])


def test_a_path_for_labels(model_and_data):
    result = run("path", model_and_data[1], "--loss", "logistic", "--n-lams", 4, "--lam-min", 0.05, "--quiet")
    assert result.exit_code == 0, result.output
    assert len(result.output.splitlines()) == 5


def test_a_path_that_is_not_proven_gives_exit_status_1(table):
    result = run("path", table, "--certified", "--eps", 1e-15, "--quiet")
    assert result.exit_code == 1
    assert "Nothing is proven" in result.output
    assert "increase --tol, --eps or --max-seconds" in result.output


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--eps", 0.1), "--eps has no effect without --certified"),
        (("--certified", "--tol", 0.1), "--tol has no effect with --certified"),
        (("--penalty", "l2"), "pass --lam-max"),
        (("--l1-ratio", 0.5), "--l1-ratio is for"),
        (("--lam-min", 1e9), "lam-min < lam-max"),
        (("--loss", "logistic"), "classes"),
        (("--output", "path.csv"), "--output should be"),
    ],
)
def test_mistakes_about_a_path_are_explained(table, options, message):
    result = run("path", table, *options)
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())
