"""Pictures and plain-text tables: a leaf that knows matplotlib and nothing of solvers."""
