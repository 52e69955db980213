"""The compiled kernels, in the widest vector code that this processor runs."""

from contextlib import suppress
from typing import TYPE_CHECKING

from fenchel._core import _portable

kernels = _portable
if not TYPE_CHECKING and _portable.runs_x86_64_v3():
    with suppress(ImportError):  # not built for this platform
        from fenchel._core import _x86_64_v3 as kernels

__all__ = ["kernels"]
