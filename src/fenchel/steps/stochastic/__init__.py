"""Stochastic gradient methods, to compare with."""
