"""Estimators with functions of a kernel."""
