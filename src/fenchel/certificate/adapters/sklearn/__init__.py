"""scikit-learn's models: each module fills the registry when it is imported."""

from fenchel.certificate.adapters.sklearn import libsvm, linear, logistic, meta, sgd

__all__ = ["libsvm", "linear", "logistic", "meta", "sgd"]
