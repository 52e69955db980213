"""Certificates of problems with several scores a sample."""

from fenchel.certificate.multiclass.judge import MulticlassJudge

__all__ = ["MulticlassJudge"]
