"""Kernels: blocks of values with error bounds, and Gram matrices whose rows are computed on demand."""

from fenchel.kernel.base import Accuracy, Kernel, NotPositiveSemidefinite
from fenchel.kernel.features import Features, NewFeatures
from fenchel.kernel.functions import (
    RBF,
    Cosine,
    Function,
    KernelLike,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    kernel_of,
)
from fenchel.kernel.gram import Gram
from fenchel.kernel.network import TangentKernel, tangent
from fenchel.kernel.samples import Samples

__all__ = [
    "RBF",
    "Accuracy",
    "Cosine",
    "Features",
    "Function",
    "Gram",
    "Kernel",
    "KernelLike",
    "Laplacian",
    "Linear",
    "NewFeatures",
    "NotPositiveSemidefinite",
    "Polynomial",
    "Precomputed",
    "Samples",
    "TangentKernel",
    "kernel_of",
    "tangent",
]
