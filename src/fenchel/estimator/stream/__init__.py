"""Estimators that also learn from streams."""
