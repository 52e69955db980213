"""The experiments of the papers behind this package, one module per paper, on any data."""

#: Paper -> module for `fenchel reproduce`, with FIGURES and TABLES (functions by number), FIXED (the figures that take
#: no data and no settings), Settings (their options, a typed dictionary) and `panels` (how often one calls `tick`).
PAPERS = {
    "certificates": "fenchel.papers.certificates",
    "interpolation": "fenchel.papers.interpolation",
    "margin": "fenchel.papers.margin",
    "pgs": "fenchel.papers.pgs",
    "sdca": "fenchel.papers.sdca",
}
