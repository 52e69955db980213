"""Dual coordinate ascent (SDCA), for one score a sample and for several."""
