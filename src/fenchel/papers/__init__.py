"""The experiments of the papers behind this package, one module per paper, on any data."""

#: Paper -> module for `fenchel reproduce`, with FIGURES and TABLES (functions by number), Settings (their options, a
#: typed dictionary) and `panels` (how often a figure calls `tick`).
PAPERS = {
    "certificates": "fenchel.papers.certificates",
    "interpolation": "fenchel.papers.interpolation",
    "margin": "fenchel.papers.margin",
    "pgs": "fenchel.papers.pgs",
    "sdca": "fenchel.papers.sdca",
}
