"""Certificates for problems with k scores per sample."""

from fenchel.certificate.multiclass.certify import certify_matrix
from fenchel.certificate.multiclass.judge import MulticlassJudge

__all__ = ["MulticlassJudge", "certify_matrix"]
