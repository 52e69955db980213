"""Proximal gradient, primal-dual and accelerated coordinate methods."""
