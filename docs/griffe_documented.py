"""A griffe extension: docstrings as the pages need them.

- Classes that `fenchel.estimator.documentation.documented` completes are shown as they are at run time: griffe reads
  sources without running them, so it sees what the source says; this reads what `help` shows.
- Docstrings are plain text. In Markdown, phi* and <B, V> would be taken for emphasis and a tag, and "::" before a
  formula would be printed.
"""

from __future__ import annotations

import inspect
import re
from importlib import import_module

import griffe


class Documented(griffe.Extension):
    """Gives objects the documentation that they have at run time, as Markdown."""

    def on_class(self, *, cls: griffe.Class, **kwargs: object) -> None:
        """Called by griffe for every class, once its members are known."""
        if cls.docstring and any(decorator.callable_path.endswith(".documented") for decorator in cls.decorators):
            kind = getattr(import_module(cls.module.path), cls.name)
            cls.docstring.value = inspect.getdoc(kind) or cls.docstring.value
            parameters = map(_parameter, inspect.signature(kind.__init__).parameters.values())
            init = griffe.Function("__init__", parameters=griffe.Parameters(*parameters), returns="None", parent=cls)
            cls.set_member("__init__", init)
        _convert(cls)

    def on_function(self, *, func: griffe.Function, **kwargs: object) -> None:
        """Called for every function and method."""
        _convert(func)

    def on_attribute(self, *, attr: griffe.Attribute, **kwargs: object) -> None:
        """Called for every attribute and property."""
        _convert(attr)


def _convert(thing: griffe.Object) -> None:
    if thing.docstring:
        thing.docstring.value = as_markdown(inspect.cleandoc(thing.docstring.value))


def as_markdown(text: str) -> str:
    """A docstring with "::" removed, and with `*` and `<` escaped, but in code, formulas and examples."""
    lines, formula, before, blank = [], None, 0, True
    text, examples, rest = text.partition("\nExamples\n--------\n")
    for line in text.split("\n"):
        indent = len(line) - len(line.lstrip())
        if not line.strip():
            blank = True
        elif formula is not None and indent >= formula:
            pass
        elif blank and lines and indent >= before + 4:
            formula = indent
        else:
            formula, blank, before = None, False, indent
            line = _escaped(re.sub("::$", ":", line.removesuffix(" ::")))
        lines.append(line)
    return "\n".join(lines) + examples + rest


def _escaped(line: str) -> str:
    if re.match(r" *\*\*?\w", line):  # **options, a parameter
        return line
    prose_and_code = re.split(r"(`[^`]*`)", line)
    prose_and_code[::2] = (prose.replace("*", r"\*").replace("<", "&lt;") for prose in prose_and_code[::2])
    return "".join(prose_and_code)


def _parameter(parameter: inspect.Parameter) -> griffe.Parameter:
    is_keyword = parameter.kind is parameter.KEYWORD_ONLY
    kind = griffe.ParameterKind.keyword_only if is_keyword else griffe.ParameterKind.positional_or_keyword
    if parameter.default is parameter.empty:  # self
        return griffe.Parameter(parameter.name, kind=kind)
    default = repr(parameter.default).replace("'", '"')
    return griffe.Parameter(parameter.name, annotation=parameter.annotation, kind=kind, default=default)
