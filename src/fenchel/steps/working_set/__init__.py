"""Primal coordinate descent and Newton steps on working sets of columns, for penalties that make zeros."""
