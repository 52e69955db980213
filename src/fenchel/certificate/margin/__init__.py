"""Margins: what a classifier reaches, what none exceeds, and proofs that no classifier separates the samples."""

from fenchel.certificate.margin.certify_margin import margin_interval
from fenchel.certificate.margin.interval import MarginInterval

__all__ = ["MarginInterval", "margin_interval"]
