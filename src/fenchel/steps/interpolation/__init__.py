"""Algorithms for interpolations: dual ascent (Dykstra), mirror descent and perceptrons, Newton steps."""
