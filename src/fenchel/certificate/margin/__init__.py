"""Margins: what a classifier reaches, what none exceeds, and proofs that no classifier separates the samples."""

from fenchel.certificate.margin.certify_margin import margin_interval
from fenchel.certificate.margin.interval import InseparableWarning, MarginInterval
from fenchel.certificate.margin.separability import Separability

__all__ = ["InseparableWarning", "MarginInterval", "Separability", "margin_interval"]
