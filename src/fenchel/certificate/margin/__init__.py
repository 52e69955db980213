"""Margins: what a classifier reaches, what none exceeds, and proofs that no classifier separates the samples."""

from fenchel.certificate.margin.interval import InseparableWarning, MarginInterval
from fenchel.certificate.margin.judge import MarginJudge
from fenchel.certificate.margin.separability import Separability

__all__ = ["InseparableWarning", "MarginInterval", "MarginJudge", "Separability"]
