"""Section V of Zhu et al. 2009: its figures can be drawn, and steps to an accuracy fall as the samples grow."""

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.datasets import dump_svmlight_file

import fenchel as fl
from fenchel.cli import main
from fenchel.papers import pgs
from fenchel.papers.datasets import Gaussians, split, topics
from fenchel.papers.descent import (
    KINDS,
    L2_LOGISTIC,
    L2_SQUARES,
    Run,
    checkpoints,
    descend,
    journal,
    nearness,
    quasi_newton,
)
from fenchel.papers.studies import Plan, Shape, Study, Toy, halved
from fenchel.solver.theory import pgs_error


def small(n=150, d=12, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.where(X[:, :3].sum(axis=1) + 0.3 * rng.normal(size=n) > 0, 1, 0)


def plan(sizes, lams=(1e-2, 1e-1), passes=2, runs=3):
    return Plan(sizes, lams, passes, runs, seed=0, tick=lambda: None)


# The data -------------------------------------------------------------------------------------------------------------


def test_the_best_direction_of_two_gaussians_is_fishers():
    source = Gaussians(6, spread=9.0)
    X, y = source.draw(200_000, np.random.default_rng(1))
    means = [X[y == sign].mean(axis=0) for sign in (-1.0, 1.0)]
    within = np.cov(X - np.where((y > 0)[:, None], means[1], means[0]), rowvar=False)
    w = np.linalg.solve(within, means[1] - means[0])
    assert np.linalg.norm(source.best()) == pytest.approx(1.0)
    np.testing.assert_allclose(w / np.linalg.norm(w), source.best(), atol=0.03)
    assert 1.0 - abs(means[1] @ source.best()) / np.linalg.norm(means[1]) > 0.01  # not the direction of the means


def test_the_best_plane_of_two_gaussians_is_wrong_for_the_stated_part():
    source = Gaussians(5, distance=1.0)
    X, y = source.draw(100_000, np.random.default_rng(0))
    assert np.mean(y * (X @ source.best()) <= 0.0) == pytest.approx(
        0.1587, abs=0.01
    )  # Phi(-1); 100 000 draws err by 0.0012


def test_generated_texts_have_rows_of_length_one_and_a_fourth_for_testing():
    data = topics(400, d=900, seed=3)
    assert data.X.shape == (400, 900)
    assert data.X_test.shape == (100, 900)
    np.testing.assert_allclose(np.sqrt(data.X.multiply(data.X).sum(axis=1)), 1.0)
    assert set(data.y) == {-1.0, 1.0}
    again = topics.__wrapped__(400, d=900, seed=3)
    np.testing.assert_array_equal(data.X.data, again.X.data)


def test_sizes_are_halved_and_grow():
    assert halved(100, 3) == (12, 25, 50, 100)
    assert halved(2, 5) == (1, 2)


# Runs -----------------------------------------------------------------------------------------------------------------


def test_the_crossing_is_the_first_look_with_the_quality():
    run = Run(np.array([1.0, 10.0, 100.0]), np.array([0.1, 0.2, 0.3]), np.array([0.5, 0.9, 0.7]))
    assert run.crossing(0.6) == (10.0, 0.2)
    assert run.crossing(0.5) == (1.0, 0.1)
    assert run.crossing(0.95) == (np.inf, np.inf)
    assert run.best == 0.9


def test_looks_grow_from_the_first_to_the_last():
    assert checkpoints(1000, 4) == [1, 10, 100, 1000]
    assert checkpoints(3, 50, first=10) == [3]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.label)
def test_looking_at_a_run_does_not_change_it(kind):
    data = split("small", *small())
    problem, seen = kind.problem(data.X, data.y, 0.05), []
    for at in ([60], [1, 7, 20, 60]):
        descend(problem, lambda w: seen.append(w) or 0.0, at, seed=4)
    np.testing.assert_allclose(seen[0], seen[-1], rtol=1e-12, atol=1e-14)
    descend(problem, lambda w: seen.append(w) or 1.0, [1, 7], enough=1.0)
    assert len(seen) == 6


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.label)
def test_quasi_newton_ends_at_the_certified_optimum(kind):
    data = split("small", *small())
    problem = kind.problem(data.X, data.y, 0.05)
    run, w = quasi_newton(problem, lambda w: 0.0)
    assert fl.certify(problem, w).relative_gap < 1e-5
    assert np.all(np.diff(run.seconds) >= 0.0)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.label)
def test_lemma_1_and_theorem_1_hold_for_a_run(kind):
    data = split("small", *small())
    found = journal(kind.problem(data.X, data.y, 0.02), 200, seed=1)
    regret, bound = found.regret(), found.regret_bound()
    assert np.all(regret <= bound[np.array(found.marks) - 1])
    assert np.all(found.gradients <= found.lipschitz * (1.0 + 1e-12))
    assert np.all(found.suboptimality >= -1e-9)
    steps = np.arange(1.0, 201.0)
    assert np.all(np.cumsum(found.suboptimality) / steps <= 3.0 * pgs_error(found.lipschitz, found.mu, steps))


# Studies --------------------------------------------------------------------------------------------------------------


def test_lam_is_chosen_by_pilots_and_medians_are_of_runs():
    data = split("small", *small(n=500))
    study = Study(L2_LOGISTIC, data, plan((100, 400)))
    target = study.targets[0]
    assert 0.0 < 1.0 - target < 0.5
    lam = study.fewest_steps(400, target)
    assert lam in study.plan.lams
    steps, seconds = study.medians(400, [lam, lam], [target, 2.0])
    assert 1.0 <= steps[0] <= 800.0
    assert seconds[0] > 0.0
    assert steps[1] == seconds[1] == np.inf
    assert study.fewest_steps(400, 2.0) == study.most_accurate(400)


def test_runs_take_other_samples_while_there_are_enough():
    data = split("small", *small(n=500))
    study = Study(L2_SQUARES, data, plan((100, 400)))
    first, second = study.problem(100, 0.1, run=0), study.problem(100, 0.1, run=1)
    np.testing.assert_array_equal(first.y, data.y[:100])
    np.testing.assert_array_equal(second.y, data.y[100:200])
    np.testing.assert_array_equal(study.problem(400, 0.1, run=1).y, data.y)


def test_the_shape_of_theorem_2_is_found_again():
    shape, m = Shape(5000.0, 1200.0), np.array([1500, 2500, 10_000, 80_000])
    np.testing.assert_allclose(shape(m.astype(float)), 5000.0 / (1.0 - 1200.0 / m))
    found = Shape.fitted(m, shape(m.astype(float)))
    assert found.limit == pytest.approx(5000.0, rel=1e-3)
    assert found.least == pytest.approx(1200.0, rel=1e-3)
    assert Shape.fitted(m, np.array([np.inf, np.inf, 1.0, 1.0])) is None
    assert shape(np.array([1000.0]))[0] == np.inf


def test_nearness_is_minus_the_distance_of_directions():
    quality = nearness(np.array([1.0, 0.0]))
    assert quality(np.array([5.0, 0.0])) == 0.0
    assert quality(np.zeros(2)) == -1.0
    assert quality(np.array([0.0, 3.0])) == pytest.approx(-np.sqrt(2.0))


@pytest.mark.slow
@pytest.mark.parametrize("d", [10, 20])
def test_the_median_number_of_steps_falls_as_the_samples_grow(d):
    """Figure 9: from samples that are hardly enough to eight times as many."""
    enough = {10: 6_000, 20: 12_000}[d]
    toy = Toy(Gaussians(d), Plan((enough, 8 * enough), (1e-3, 1e-2, 3e-2, 1e-1), 2, 25, 0, lambda: None))
    few, many = (toy.median(m) for m in toy.plan.sizes)
    assert np.isfinite(many)
    assert 1.5 * many <= few


# The figures ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def tiny(monkeypatch):
    """The toy sets of a few hundred samples."""
    monkeypatch.setattr(pgs, "DEFAULTS", pgs.Defaults(toy_samples=256, toy_runs=2, theory_samples=40, halvings=2))


def test_figures_5_to_8_have_time_and_steps_of_every_data_set(tiny):
    data = {"one": small(), "two": small(seed=1)}
    for number in (5, 6, 7, 8):
        ticks = []
        figure = pgs.FIGURES[number](data, lams=[1e-2, 1e-1], epochs=2, runs=2, tick=lambda seen=ticks: seen.append(1))
        assert len(figure.axes) == 4
        assert figure.axes[2].get_title().startswith("two: seconds")
        assert len(ticks) == pgs.panels(number, 2, 2)
        assert figure.axes[0].get_xscale() == figure.axes[0].get_yscale() == "log"


@pytest.mark.filterwarnings("ignore:Figure 9. no median")
def test_figure_9_is_of_gaussians_only(tiny):
    ticks = []
    figure = pgs.figure9(lams=[1e-2], tick=lambda: ticks.append(1))
    assert len(ticks) == pgs.panels(9, 1, None) == 9
    assert [line.get_label() for line in figure.axes[0].get_lines()][:1] == ["10 features"]
    with pytest.raises(ValueError, match="takes no data"):
        pgs.figure9(small())
    with pytest.raises(ValueError, match="takes no data"):
        pgs.panels(9, None, 1)


def test_figure_9_says_which_medians_are_missing(tiny, monkeypatch):
    monkeypatch.setattr(Toy, "median", lambda self, m: np.inf if self.source.d == 20 else 100.0)
    with pytest.warns(UserWarning, match=r"Figure 9: no median, .* for 20 features: m = "):
        figure = pgs.figure9(lams=[1e-2])
    assert "no median" in figure.axes[0].texts[0].get_text()


def test_the_theory_is_drawn_above_the_runs(tiny):
    for number, lines in ((10, 2), (11, 4)):
        figure = pgs.FIGURES[number](small(), lams=[0.1, 0.01])
        assert len(figure.axes) == pgs.panels(number, 2, None) == 6
        assert all(len(axes.get_lines()) == lines for axes in figure.axes)


def test_table_2_has_both_accuracies(tiny):
    printed = pgs.table2(small(), lams=[1e-2, 1e-1], runs=3)
    assert printed.startswith("Table II: PGS, medians and deviations of 3 runs")
    assert printed.count("data  ") == 4
    assert printed.count("±") == 3


def test_the_command_prints_the_table_and_draws_a_figure(tmp_path):
    dump_svmlight_file(*small(), str(tmp_path / "mine.svm"), zero_based=False)

    def run(*arguments):
        return CliRunner().invoke(main, ["reproduce", *map(str, arguments)])

    common = ["--data", tmp_path / "mine.svm", "--lam", "0.01", "--epochs", "2", "--runs", "2"]
    printed = run("pgs", "--table", 2, *common)
    assert printed.exit_code == 0, printed.output
    assert "Table II" in printed.output
    drawn = run("pgs", "--figure", 6, "--samples", 64, *common, "--output", tmp_path / "six.svg")
    assert drawn.exit_code == 0, drawn.output
    assert (tmp_path / "six.svg").exists()
    for arguments, message in (
        (("pgs", *common), "takes no data"),
        (("pgs", "--table", 3), "pgs has the tables 2; got 3"),
        (("sdca", "--table", 1), "sdca has no tables; got 1"),
        (("sdca", "--samples", 10), "sdca has no option --samples"),
        (("pgs", "--table", 2, "--output", tmp_path / "a.png"), "a table is printed"),
    ):
        refused = run(*arguments)
        assert refused.exit_code == 2
        assert message in " ".join(refused.output.split())
