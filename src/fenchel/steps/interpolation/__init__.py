"""Algorithms for interpolations: dual ascent, mirror descent, Newton steps."""
