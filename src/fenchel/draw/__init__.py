"""Pictures and plain-text tables, independent of the solvers."""
