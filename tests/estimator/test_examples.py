"""The examples in the estimators' docstrings run and print what they say."""

import doctest
import inspect

import pytest

import fenchel

ESTIMATORS = [value for value in vars(fenchel).values() if inspect.isclass(value) and hasattr(value, "fit")]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda kind: kind.__name__)
def test_examples(estimator):
    (example,) = doctest.DocTestFinder(recurse=False).find(estimator, estimator.__name__)
    found = doctest.DocTestRunner(verbose=False).run(example)
    assert found.attempted > 0 or estimator is fenchel.LinearRegressor  # its example is that of LinearClassifier
    assert found.failed == 0


def test_every_parameter_is_documented():
    assert len(ESTIMATORS) == 28
    for estimator in ESTIMATORS:
        for name in inspect.signature(estimator).parameters:
            assert name in estimator.__doc__.split("Attributes")[0], (estimator.__name__, name)
