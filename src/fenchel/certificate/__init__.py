"""Certificates: bounds, valid in exact arithmetic, on the suboptimality of any model."""

from fenchel.certificate import multiclass  # noqa: F401  (registers its judge)
from fenchel.certificate.adapters import certify
from fenchel.certificate.certificate import Certificate, CertificateError
from fenchel.certificate.certify import certify_weights

__all__ = ["Certificate", "CertificateError", "certify", "certify_weights"]
