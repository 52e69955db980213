"""The adapters by class name and package, filled by a decorator; the lookup imports no package."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from fenchel.certificate.adapters.claim import Claim
from fenchel.certificate.adapters.fitted import ModelFit
from fenchel.data.typing import MatrixLike, VectorLike

Adapter = Callable[..., list[Claim]]


@dataclass(frozen=True)
class Entry:
    """An adapter, the package of its classes, and its keywords."""

    package: str
    claims: Adapter
    options: frozenset[str]

    def knows(self, module: str) -> bool:
        """Whether the module belongs to the package."""
        return module == self.package or module.startswith(self.package + ".")


_ENTRIES: dict[str, list[Entry]] = {}


def adapter(*names: str, package: str, options: Iterable[str] = ()) -> Callable[[Adapter], Adapter]:
    """Register a function (model, X, y, sample_weight, **options) -> claims for classes of these names in a package."""

    def register(function: Adapter) -> Adapter:
        for name in names:
            _ENTRIES.setdefault(name, []).append(Entry(package, function, frozenset(options)))
        return function

    return register


def adapters_of(package: str) -> Callable[..., Callable[[Adapter], Adapter]]:
    """`adapter` for the classes of one package, and for functions (fit, **options) -> claims of a `ModelFit`."""

    def register(*names: str, options: Iterable[str] = ()) -> Callable[[Adapter], Adapter]:
        known = adapter(*names, package=package, options=options)
        return lambda function: known(lambda *data, **given: function(ModelFit(*data), **given))

    return register


def reject(*names: str, package: str, because: str) -> None:
    """Register classes that cannot be certified, with the reason for the error."""

    def refuse(model: object, X: MatrixLike, y: VectorLike, sample_weight: VectorLike | None) -> list[Claim]:
        raise TypeError(f"{type(model).__name__} cannot be certified: {because}")

    adapter(*names, package=package)(refuse)


def claims_of(
    model: object,
    X: MatrixLike | None,
    y: VectorLike | None,
    sample_weight: VectorLike | None,
    options: Mapping[str, object],
) -> list[Claim]:
    """The claims of a model, by the adapter of its class; a TypeError for unknown models and keywords."""
    entry = _find(model)
    if entry is None:
        raise TypeError(_unknown(model))
    unused = sorted(set(options) - entry.options)
    if unused:
        takes = f"takes {', '.join(sorted(entry.options))}" if entry.options else "takes no further keywords"
        raise TypeError(f"certify does not use {', '.join(unused)} for {_name(model)}, which {takes}")
    if X is None or y is None:
        raise TypeError(f"certify needs the data that {_name(model)} was fitted to: certify(model, X, y)")
    require_same_columns(model, X)
    return entry.claims(model, X, y, sample_weight, **options)


def require_same_columns(model: object, X: MatrixLike) -> None:
    """Raise unless a data frame has the columns of the fit, in the same order."""
    names, columns = getattr(model, "feature_names_in_", None), getattr(X, "columns", None)
    if names is None or columns is None or len(names) != len(columns):
        return
    for k, (name, column) in enumerate(zip(names, columns, strict=True)):
        if name != column:
            raise ValueError(f"X has the column {column!r} at position {k} where the model was fitted with {name!r}")


def _find(model: object) -> Entry | None:
    """The entry of the model's class, or of a base class if no class in between defines fit or path."""
    for cls in type(model).__mro__:
        for entry in _ENTRIES.get(cls.__name__, ()):
            if entry.knows(cls.__module__):
                return entry
        if vars(cls).keys() & {"fit", "path"}:  # its objective may differ from that of its base class
            return None
    return None


def _unknown(model: object) -> str:
    if isinstance(model, type):
        return f"certify needs a fitted model, got the class {model.__name__} itself"
    return (
        f"fenchel does not know the objective of {_name(model)}. State the problem and certify its weights w and "
        "intercept b: fl.certify(fl.Problem(X, y, loss=fl.losses.Logistic(), penalty=fl.penalties.L2(1e-3), "
        "intercept=True), w, b)"
    )


def _name(model: object) -> str:
    return "a model file" if isinstance(model, str) else type(model).__name__
