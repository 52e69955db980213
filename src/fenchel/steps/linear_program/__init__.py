"""Piecewise linear losses and penalties: linear programs, by an interior-point method and a solve on its last face."""
