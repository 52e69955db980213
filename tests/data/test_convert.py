"""Targets, labels and weights."""

import numpy as np
import pytest

from fenchel import MulticlassProblem, Problem, losses, penalties
from fenchel.data import encode_labels

X = np.arange(8.0).reshape(4, 2)
SIGNS = np.array([1, -1, 1, -1])


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.ones(3), "y has 3 entries, but X has 4 rows"),
        (np.ones((4, 2)), "y must be a vector"),
        ([1, -1, np.nan, 1], "y has nan at position 2"),
        ([1, -1, np.inf, 1], "y has inf at position 2"),
        ([1, -1, "b", 1], "y has .*'1'.*position 0"),
        ([1, 0, 1, -1], "y has 0 at position 1; a classification loss needs labels -1 and \\+1"),
    ],
)
def test_bad_labels_are_refused(y, message):
    with pytest.raises(ValueError, match=message):
        Problem(X, y, losses.Hinge(), penalties.L2(1.0))


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, 1, -1, 1], "sample_weight has -1 at position 2; weights must not be negative"),
        ([1, 1, np.nan, 1], "sample_weight has nan at position 2"),
        ([0, 0, 0, 0], "zero everywhere"),
        ([1, 1], "sample_weight has 2 entries"),
    ],
)
def test_bad_weights_are_refused(weights, message):
    with pytest.raises(ValueError, match=message):
        Problem(X, SIGNS, losses.Hinge(), penalties.L2(1.0), sample_weight=weights)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"loss": losses.Hinge}, "an instance, not the class"),
        ({"loss": "hinge"}, "loss must be a Loss"),
        ({"penalty": 0.1}, "penalty must be a Penalty"),
        ({"intercept": 1.0}, "intercept must be True or False"),
    ],
)
def test_wrong_parts_are_refused(arguments, message):
    with pytest.raises(TypeError, match=message):
        Problem(X, SIGNS, **arguments)


def test_penalties_must_fit_the_number_of_weights():
    for penalty in (penalties.GroupL2(1.0, [0, 0, 1]), penalties.FusedL1(1.0, D=np.ones((1, 3)))):
        with pytest.raises(ValueError, match="but there are 2 weights"):
            Problem(X, SIGNS, losses.Hinge(), penalty)
    with pytest.raises(ValueError, match="at least two"):
        Problem(X[:, :1], SIGNS, losses.Hinge(), penalties.FusedL1(1.0))


@pytest.mark.parametrize(
    "labels",
    [[3, 1, 3, 2], ["b", "a", "b", "c"], np.array(["b", "a", "b", "c"], dtype=object), [True, False, True, True]],
)
def test_labels_of_any_type_are_encoded(labels):
    classes, codes = encode_labels(labels)
    assert list(classes[codes]) == list(labels)


@pytest.mark.parametrize(
    ("labels", "message"),
    [([], "empty"), ([1.0, np.nan], "missing label"), (["a", None], "missing label"), (["a", "a"], "one class only")],
)
def test_bad_label_vectors_are_refused(labels, message):
    with pytest.raises(ValueError, match=message):
        encode_labels(np.array(labels, dtype=object) if None in labels else labels)


def test_targets_of_other_shapes_and_types_are_accepted():
    problem = Problem(X.astype(int), np.array([[1], [2], [3], [4]]))
    assert problem.y.dtype == np.float64
    assert problem.y.shape == (4,)


def test_class_codes_beyond_the_number_of_samples_are_refused_before_anything_is_allocated():
    for far in (4, 2 * 10**9):
        with pytest.raises(ValueError, match=rf"y has the class {far}, but only 4 samples"):
            MulticlassProblem(X, [0, 1, 2, far])
    assert MulticlassProblem(X, [0, 1, 2, 6], n_classes=7).n_classes == 7
