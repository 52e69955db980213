"""Newton's method in the primal, for one or several scores per sample."""
