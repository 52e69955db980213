"""Models with many zeros: the Lasso and its kin."""
