"""The experiments of the papers behind this package, one module a paper, on any data."""

#: Paper -> module with FIGURES (functions by number), which `fenchel reproduce` calls.
PAPERS = {"sdca": "fenchel.papers.sdca"}
