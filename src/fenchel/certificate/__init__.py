"""Certificates: bounds, valid in exact arithmetic, on the suboptimality of any model."""

from fenchel.certificate import interpolation, kernel, multiclass  # noqa: F401  (each registers its judge)
from fenchel.certificate.adapters import certify
from fenchel.certificate.certificate import Certificate, CertificateError
from fenchel.certificate.certify import certify_weights
from fenchel.certificate.interpolation import Infeasible
from fenchel.certificate.margin import InseparableWarning, MarginInterval, Separability

__all__ = [
    "Certificate",
    "CertificateError",
    "Infeasible",
    "InseparableWarning",
    "MarginInterval",
    "Separability",
    "certify",
    "certify_weights",
]
