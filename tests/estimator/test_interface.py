"""What scikit-learn shows of our estimators, and returns where it is configured."""

import pytest
import scipy.sparse as sp
import sklearn
from sklearn.datasets import load_diabetes, load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fenchel as fl
from fenchel.estimator.exchange import interface

X, Y = load_diabetes(return_X_y=True)
HAS_INTERFACE = "sparse_interface" in sklearn.get_config()


@pytest.mark.parametrize("kind", ["spmatrix", "sparray"])
def test_sparse_weights_are_of_the_kind_that_is_configured(kind):
    if not HAS_INTERFACE and kind == "sparray":
        pytest.skip("needs scikit-learn 1.9")
    form = sp.csr_array if kind == "sparray" else sp.csr_matrix
    with sklearn.config_context(**{"sparse_interface": kind} if HAS_INTERFACE else {}):
        assert type(fl.Lasso().fit(X, Y).sparse_coef_) is form
        features, labels = load_iris(return_X_y=True)
        model = fl.LinearSVC().fit(features, labels)
        before = model.decision_function(features)
        assert type(model.sparsify().coef_) is form
        assert before == pytest.approx(model.decision_function(features))


@pytest.fixture
def address(monkeypatch):
    def known(urls):
        monkeypatch.setattr(interface, "metadata", lambda name: Metadata(urls))
        interface.documentation_address.cache_clear()

    yield known
    monkeypatch.undo()
    interface.documentation_address.cache_clear()


class Metadata:
    def __init__(self, urls):
        self.urls = urls

    def get_all(self, name):
        assert name == "Project-URL"
        return self.urls


class Own(fl.Ridge):
    """A user's subclass, which our pages do not have."""


def test_diagrams_link_to_the_documentation_that_the_package_names(address):
    address(["Home, https://home.test", "Documentation, https://docs.test/fenchel/"])
    link = "https://docs.test/fenchel/api.html#fenchel.Ridge"
    assert fl.Ridge()._get_doc_link() == link
    assert link in make_pipeline(StandardScaler(), fl.Ridge())._repr_html_()
    assert Own()._get_doc_link() == ""


@pytest.mark.parametrize("urls", [None, ["Home, https://home.test"]])
def test_without_an_address_there_is_no_link(urls, address):
    address(urls)
    assert fl.Ridge()._get_doc_link() == ""
    assert "Documentation for Ridge" not in fl.Ridge()._repr_html_()


def test_the_table_of_fitted_attributes_shows_the_gap():
    model = fl.Ridge().fit(X, Y)
    text = model._repr_html_()
    if "Fitted attributes" not in text:
        pytest.skip("needs scikit-learn 1.9")
    assert repr(model.certificate_) in text
