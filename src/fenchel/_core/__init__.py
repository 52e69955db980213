"""The compiled kernels, in the widest vector code that this processor runs."""

from typing import TYPE_CHECKING

from fenchel._core import _portable

if TYPE_CHECKING or not _portable.runs_x86_64_v3():
    kernels = _portable
else:
    from fenchel._core import _x86_64_v3 as kernels

__all__ = ["kernels"]
