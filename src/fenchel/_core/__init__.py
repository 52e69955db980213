"""The compiled kernels, in the widest vector code that this processor runs."""

from fenchel._core import _portable

if _portable.runs_x86_64_v3():
    from fenchel._core import _x86_64_v3 as kernels
else:
    kernels = _portable

__all__ = ["kernels"]
