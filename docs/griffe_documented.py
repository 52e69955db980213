"""A griffe extension: classes that `fenchel.estimator.documentation.documented` completes, with their full docstring.

griffe reads sources without running them, so it sees what the source says; this reads what `help` shows.
"""

from __future__ import annotations

import inspect
from importlib import import_module

import griffe


class Documented(griffe.Extension):
    """Replaces docstrings of decorated classes by those at run time."""

    def on_class(self, *, cls: griffe.Class, **kwargs: object) -> None:
        """Called by griffe for every class, once its members are known."""
        if cls.docstring and any(decorator.callable_path.endswith(".documented") for decorator in cls.decorators):
            kind = getattr(import_module(cls.module.path), cls.name)
            cls.docstring.value = inspect.getdoc(kind) or cls.docstring.value
