"""Certificates of problems with k scores per sample."""

from fenchel.certificate.multiclass.judge import MulticlassJudge

__all__ = ["MulticlassJudge"]
