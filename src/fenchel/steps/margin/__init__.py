"""Algorithms on the dual simplex of a hard margin: momentum, adaptive sampling, and their baselines."""
