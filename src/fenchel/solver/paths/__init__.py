"""Solutions along a grid of lam, and for all lam of an interval."""
