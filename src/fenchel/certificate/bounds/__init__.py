"""Bounds on P and D in exact arithmetic, from products computed in floating point."""
