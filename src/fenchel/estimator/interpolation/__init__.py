"""Estimators with hard constraints: every sample is fitted exactly, or with a margin."""
