"""The figures of Ji, Srebro and Telgarsky (2021) can be drawn, and what they show is so."""

import warnings

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.datasets import dump_svmlight_file

import fenchel as fl
from fenchel.cli import main
from fenchel.papers import margin
from fenchel.papers.curves import zero_one
from fenchel.papers.datasets import datasets, split
from fenchel.papers.margin import METHODS, compare, largest_margin, margin_of
from tests.helpers.margin import mixed_up, separable

MOMENTUM, PAPER, LOGISTIC = (method.label for method in METHODS[:3])
BASELINES = [method.label for method in METHODS[3:]]


@pytest.mark.parametrize(("number", "draw"), [(1, separable), (2, mixed_up)])
def test_every_figure_has_all_methods(number, draw):
    ticks, sets = [], {"one": draw(0, n=40, d=4), "two": draw(1, n=40, d=4)}
    figure = margin.FIGURES[number](sets, epochs=20, tick=lambda: ticks.append(1))
    assert len(ticks) == margin.panels(number, None, 2) == 2
    assert len(figure.axes) == (6 if number == 1 else 2)
    extra = [1, 2, 1] if number == 1 else [0]  # the largest margin; Theorem 3.1, printed and sharp; Lemma 3.2
    for k, axes in enumerate(figure.axes):
        assert len(axes.get_lines()) == len(METHODS) + extra[k % len(extra)]
        assert axes.get_title() == ("one" if axes in figure.axes[: len(extra)] else "two") + " (32 x 4)"
    labels = {text.get_text() for text in figure.legends[0].get_texts()}
    assert {method.label for method in METHODS} <= labels


def test_the_bundled_digits_can_be_separated_in_figure_1_only():
    assert all(largest_margin(dataset) is not None for dataset in datasets(margin.bundled(1), 0))
    (odd,) = datasets(margin.bundled(2), 0)
    assert largest_margin(odd) is None
    assert [margin.panels(number, None, None) for number in (1, 2, 3, 4)] == [2, 1, 1, 1]
    with pytest.raises(ValueError, match="draw figure 2"):
        margin.figure1(mixed_up(0))


def test_a_curve_has_the_margins_and_errors_of_its_weights():
    dataset = split("one", *separable(0, n=50, d=4))
    curve = compare(dataset, 10, methods=METHODS[1:2])[PAPER]
    assert list(curve.passes) == [2.0, 4.0, 6.0, 8.0, 10.0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fl.NotCertifiedWarning)
        state = METHODS[1].algorithm.begin(margin.problem_of(dataset), None, 0)
    for _ in range(5):
        state.step()
    w = state.candidates()[0].w
    assert curve.margin[-1] == pytest.approx(margin_of(dataset, w))
    assert curve.error[-1] == zero_one(w, dataset)
    assert curve.upper[-1] == pytest.approx(np.linalg.norm(state.M) * np.ldexp(1.0, state.form.rows.exponent))
    assert np.all(curve.upper >= largest_margin(dataset) * (1.0 - 1e-6))
    assert margin_of(dataset, 0.0 * w) == 0.0


def test_momentum_misses_the_least_of_the_largest_margin():
    """From 200 products with X on; in the end the paper's steps are ahead of all baselines, too, but sampling."""
    baselines = [label for label in BASELINES if label != "sampling (Algorithm 2)"]
    for dataset in datasets(margin.bundled(1), 0):
        found, best = compare(dataset, 1000), largest_margin(dataset)

        def missing(label, passes, found=found, best=best):
            curve = found[label]
            return 1.0 - np.max(curve.margin[curve.passes <= passes]) / best

        for passes in (200, 500, 1000):
            others = min(missing(label, passes) for label in baselines)
            for label in (MOMENTUM, LOGISTIC):
                assert missing(label, passes) < others
        assert missing(PAPER, 1000) < min(missing(label, 1000) for label in baselines)
        assert missing(MOMENTUM, 1000) < 0.05


def test_momentum_has_low_test_errors_where_no_plane_separates():
    (dataset,) = datasets(margin.bundled(2), 0)
    found = compare(dataset, 300)
    own = [np.mean(found[label].error[found[label].passes >= 30]) for label in (MOMENTUM, LOGISTIC)]
    batch = [np.mean(curve.error[curve.passes >= 30]) for label, curve in found.items() if label.startswith("batch")]
    assert max(own) < min(batch)


def test_the_command_draws_a_users_file(tmp_path):
    X, y = separable(3, n=40, d=5)
    dump_svmlight_file(X, y, str(tmp_path / "mine.svm"))
    arguments = ["reproduce", "margin", "--figure", "1", "--data", str(tmp_path / "mine.svm"), "--epochs", "10"]
    result = CliRunner().invoke(main, [*arguments, "--output", str(tmp_path / "mine.png")])
    assert result.exit_code == 0, result.output
    assert (tmp_path / "mine.png").stat().st_size > 10_000
    result = CliRunner().invoke(main, [*arguments, "--samples", "3"])
    assert result.exit_code == 2
    assert "no option --samples" in result.output
