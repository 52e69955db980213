"""The experiments of the papers behind this package, one module a paper, on any data."""

#: Paper -> module with FIGURES (functions by number) and `panels` (how many a figure has), for `fenchel reproduce`.
PAPERS = {"certificates": "fenchel.papers.certificates", "sdca": "fenchel.papers.sdca"}
