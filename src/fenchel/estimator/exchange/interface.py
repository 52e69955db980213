"""How our estimators show up in scikit-learn: links to documentation, and the kind of sparse matrices."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, metadata
from typing import Any

import scipy.sparse as sp
from sklearn import get_config


class DocumentationLinks:
    """The link of an estimator in scikit-learn's diagrams: its entry on the API page of the documentation.

    The address is that of "Documentation" among the project URLs of the installed package; without one there is no
    link.
    """

    _doc_link_module = "fenchel"

    @property
    def _doc_link_template(self) -> str:
        return f"{documentation_address()}/api.html#fenchel.{{estimator_name}}"

    def _get_doc_link(self) -> str:
        own = type(self).__module__.partition(".")[0] == self._doc_link_module
        known = own and documentation_address()
        return self._doc_link_template.format(estimator_name=type(self).__name__) if known else ""


@cache
def documentation_address() -> str:
    """Where the documentation is, without a slash at the end; "" if the package does not say."""
    try:
        addresses = metadata("fenchel").get_all("Project-URL") or []
    except PackageNotFoundError:
        return ""
    labelled = (address.partition(",") for address in addresses)
    known = [address.strip().rstrip("/") for label, _, address in labelled if label.strip().lower() == "documentation"]
    return known[0] if known else ""


def as_csr(matrix: Any) -> Any:
    """A CSR array where scikit-learn is configured to return sparse arrays (`sparse_interface`), else a CSR matrix."""
    return sp.csr_array(matrix) if get_config().get("sparse_interface") == "sparray" else sp.csr_matrix(matrix)
