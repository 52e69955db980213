"""Robust regressions."""
