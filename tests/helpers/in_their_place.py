"""A pytest plugin: our classes in the place of scikit-learn's, and a line of JSON for each test that calls our `fit`.

`OUTCOMES=file python -m pytest -p tests.helpers.in_their_place --pyargs sklearn.linear_model.tests.test_ridge`
"""

import functools
import importlib
import json
import os
import signal
from contextlib import contextmanager
from pathlib import Path

import pytest

import fenchel

NAMES = {
    "sklearn.linear_model": [
        "ElasticNet",
        "ElasticNetCV",
        "HuberRegressor",
        "Lasso",
        "LassoCV",
        "LogisticRegression",
        "LogisticRegressionCV",
        "QuantileRegressor",
        "Ridge",
        "RidgeCV",
        "RidgeClassifier",
    ],
    "sklearn.svm": ["LinearSVC", "LinearSVR"],
}
#: Where scikit-learn's tests import them from.
MODULES = {
    "sklearn.linear_model": ["_coordinate_descent", "_logistic", "_ridge", "_huber", "_quantile"],
    "sklearn.svm": ["_classes"],
}
#: Seconds after which a test fails.
LIMIT = 120
called = [False]


def seen(fit):
    @functools.wraps(fit)
    def noted(self, *args, **keywords):
        called[0] = True
        return fit(self, *args, **keywords)

    return noted


def pytest_configure():
    for package, names in NAMES.items():
        modules = [importlib.import_module(f"{package}.{name}") for name in MODULES[package]]
        for name in names:
            kind = getattr(fenchel, name)
            kind.fit = seen(kind.fit)
            for module in [importlib.import_module(package), *modules]:
                if hasattr(module, name):
                    setattr(module, name, kind)


@contextmanager
def limited():
    def late(*_):
        raise TimeoutError(f"{LIMIT} s")

    signal.signal(signal.SIGALRM, late)
    signal.alarm(LIMIT)
    try:
        yield
    finally:
        signal.alarm(0)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    called[0] = False
    try:
        with limited():
            return (yield)
    finally:
        item.calls_our_fit = called[0]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if call.when == "call" and getattr(item, "calls_our_fit", False):
        said = f"{call.excinfo.typename}: {call.excinfo.value}" if call.excinfo else ""
        lines = said.strip().splitlines() or [""]
        test = f"{item.module.__name__.rpartition('.')[2]}::{item.name}"
        with Path(os.environ["OUTCOMES"]).open("a") as file:
            file.write(json.dumps({"test": test, "outcome": report.outcome, "said": lines[0][:200]}) + "\n")
    return report
