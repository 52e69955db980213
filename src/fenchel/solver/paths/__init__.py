"""Solutions along a grid of lam, and along all lam."""
