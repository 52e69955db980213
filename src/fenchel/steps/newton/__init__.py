"""Newton's method in the primal, for one score a sample and for several."""
