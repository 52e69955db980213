"""Regressions that are robust to outliers."""
