"""Algorithms for interpolations: Newton and gradient steps, Dykstra's algorithm, mirror descent, perceptrons."""
