"""Stochastic gradient methods, as baselines."""
