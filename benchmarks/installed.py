"""Which packages are installed, in the environment or in a folder of their own."""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path

#: Packages that cannot live beside the others: the import package of the first has the name of liblinear-official's,
#: the second asks for an old NumPy, and runs with a new one.
APART = ("liblinear-multicore", "adelie")


def _folder(package: str) -> str:
    return str(Path(sys.prefix) / "peers" / package)


def use_own_folder(package: str) -> None:
    """Let imports find a package that lives apart, before any other of its name."""
    if _folder(package) not in sys.path:
        sys.path.insert(0, _folder(package))


def version(package: str) -> str | None:
    """The version of an installed distribution, None if it is not installed."""
    if package in APART:
        found = list(metadata.distributions(name=package, path=[_folder(package)]))
        return found[0].version if found else None
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
