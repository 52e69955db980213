"""The experiments of the papers behind this package, one module per paper, on any data."""

#: Paper -> module with FIGURES (functions by number) and `panels` (their number in a figure), for `fenchel reproduce`.
PAPERS = {"certificates": "fenchel.papers.certificates", "sdca": "fenchel.papers.sdca"}
