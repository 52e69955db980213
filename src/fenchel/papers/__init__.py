"""The experiments of the papers behind this package, one module per paper, on any data."""

#: Paper -> module for `fenchel reproduce`, with FIGURES (functions by number), Settings (their options, a typed
#: dictionary) and `panels` (their number in a figure).
PAPERS = {
    "certificates": "fenchel.papers.certificates",
    "interpolation": "fenchel.papers.interpolation",
    "margin": "fenchel.papers.margin",
    "sdca": "fenchel.papers.sdca",
}
