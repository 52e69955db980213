"""The compiled kernels, for the vector instructions of this processor."""

from contextlib import suppress
from typing import TYPE_CHECKING

from fenchel._core import _portable

kernels = _portable
if not TYPE_CHECKING and _portable.runs_x86_64_v3():
    with suppress(ImportError):  # not built for this platform
        from fenchel._core import _x86_64_v3 as kernels

CompiledLoss = (
    kernels.Hinge
    | kernels.SmoothedHinge
    | kernels.SquaredHinge
    | kernels.Logistic
    | kernels.Exponential
    | kernels.Squared
    | kernels.Pinball
    | kernels.EpsilonInsensitive
    | kernels.SquaredEpsilonInsensitive
    | kernels.Huber
)
#: The losses that consist of straight pieces.
CompiledPieces = kernels.Hinge | kernels.Pinball | kernels.EpsilonInsensitive
CompiledMulticlassLoss = kernels.Multinomial | kernels.CrammerSinger
CompiledLink = kernels.Linear | kernels.Threshold | kernels.Power | kernels.Entropic

__all__ = ["CompiledLink", "CompiledLoss", "CompiledMulticlassLoss", "CompiledPieces", "kernels"]
