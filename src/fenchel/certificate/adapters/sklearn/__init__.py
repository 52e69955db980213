"""scikit-learn's models; each module registers its adapters when imported."""

from fenchel.certificate.adapters.sklearn import libsvm, linear, logistic, meta, sgd

__all__ = ["libsvm", "linear", "logistic", "meta", "sgd"]
