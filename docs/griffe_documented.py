"""A griffe extension: classes that `fenchel.estimator.documentation.documented` completes, as they are at run time.

griffe reads sources without running them, so it sees what the source says; this reads what `help` shows.
"""

from __future__ import annotations

import inspect
from importlib import import_module

import griffe


class Documented(griffe.Extension):
    """Gives decorated classes the docstring and the parameters that they have at run time."""

    def on_class(self, *, cls: griffe.Class, **kwargs: object) -> None:
        """Called by griffe for every class, once its members are known."""
        if cls.docstring and any(decorator.callable_path.endswith(".documented") for decorator in cls.decorators):
            kind = getattr(import_module(cls.module.path), cls.name)
            cls.docstring.value = inspect.getdoc(kind) or cls.docstring.value
            parameters = map(_parameter, inspect.signature(kind.__init__).parameters.values())
            init = griffe.Function("__init__", parameters=griffe.Parameters(*parameters), returns="None", parent=cls)
            cls.set_member("__init__", init)


def _parameter(parameter: inspect.Parameter) -> griffe.Parameter:
    is_keyword = parameter.kind is parameter.KEYWORD_ONLY
    kind = griffe.ParameterKind.keyword_only if is_keyword else griffe.ParameterKind.positional_or_keyword
    if parameter.default is parameter.empty:  # self
        return griffe.Parameter(parameter.name, kind=kind)
    default = repr(parameter.default).replace("'", '"')
    return griffe.Parameter(parameter.name, annotation=parameter.annotation, kind=kind, default=default)
