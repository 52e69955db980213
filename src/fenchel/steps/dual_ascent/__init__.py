"""Dual coordinate ascent (SDCA), for one or several scores per sample."""
