"""Documentation of shared parameters and attributes of estimators.

`documented` makes the fields of an estimator its parameters, and completes the sections "Parameters" and "Attributes"
of its docstring. The API pages read the result by a griffe extension (docs/griffe_documented.py).
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias, TypeVar, dataclass_transform

Kind = TypeVar("Kind", bound=type)
Entries: TypeAlias = dict[str, str]

#: Shared parameters in the order of signatures, which have the defaults.
PARAMETERS: Entries = {
    "alpha": "float\n    Weight of the penalty.",
    "l1_ratio": "float\n    Between 0 (only L2) and 1 (only L1).",
    "eps": "float\n    The smallest alpha relative to the largest.",
    "alphas": (
        "int or array of positive numbers\n"
        "    The number of alphas, from the smallest one with w = 0 down to eps times that; or the alphas. None is 100."
    ),
    "fit_intercept": "bool\n    Whether to fit an intercept.",
    "penalize_intercept": (
        "bool\n    True is LIBLINEAR's objective: b is the weight of a column of `intercept_scaling`, and penalised."
    ),
    "intercept_scaling": (
        "float\n    The entry of the constant column; for `penalize_intercept=True`. Without it values above 1, which "
        "make\n    an intercept cheap in scikit-learn, are accepted: it costs nothing."
    ),
    "class_weight": (
        'dict, "balanced" or None\n    Factors of the sample weights; "balanced": the same total for each class.'
    ),
    "cv": "int, splitter, iterable or None\n    None is five folds, stratified for classes.",
    "rule": (
        '{"best", "one_standard_error"}\n'
        "    The smallest mean error; or the largest alpha (with the same l1_ratio) whose mean error exceeds it by at\n"
        "    most its standard error."
    ),
    "solver": ('str or Solver\n    A solver of `solve`. scikit-learn\'s names are accepted, and mean "auto".'),
    "tol": "float\n    A fit ends when its certified gap is at most tol times the objective.",
    "max_iter": (
        "int, optional\n    The largest number of steps of a fit; 100000 by default (scikit-learn counts other\n"
        "    steps). 0 certifies the start."
    ),
    "max_seconds": "float, optional\n    Time limit for the whole fit.",
    "random_state": "int, RandomState or None\n    The seed; None is 0.",
    "warm_start": (
        "bool\n    Start from the solution of the last fit if shapes agree. It is certified first; if it is good\n"
        "    enough, there are 0 steps."
    ),
    "verbose": "int\n    Anything but 0 shows a progress bar for each fit.",
    "progress": "bool\n    Show a progress bar.",
    "n_threads": "int or None\n    Threads of a fit; None is all cores.",
    "n_jobs": "int, optional\n    Threads: None is one, -1 is all cores, -2 all but one. A search runs folds in them.",
    "precompute": (
        'bool, "auto" or array\n    A hint to scikit-learn\'s algorithm; it has no effect on the minimiser.\n'
        "    An array must be the Gram matrix of X."
    ),
    "accelerate": 'bool\n    Whether coordinate ascent has momentum; for solver="dykstra".',
    "on_infeasible": (
        '{"raise", "least_violation"}\n'
        "    If no model satisfies all constraints: raise `Infeasible`, or find the one whose scores have the least\n"
        '    mean squared distance to their sets, by solver="auto".'
    ),
    "on_inseparable": (
        '{"warn", "raise"}\n    If no linear classifier separates the samples: warn, with the proof, and fit the one '
        "whose scores\n    have the least mean squared distance to a margin of 1; or raise `Infeasible`, which has the "
        "proof."
    ),
    "selection": '{"cyclic", "random"}\n    A hint to scikit-learn\'s algorithm; it has no effect on the minimiser.',
    "dual": 'bool or "auto"\n    A hint to scikit-learn\'s algorithm; it has no effect on the minimiser.',
    "copy_X": "bool\n    X is never changed; either value has the same effect.",
    "positive": "bool\n    Whether weights must not be negative.",
    "n_alphas": "int, optional\n    The number of alphas, by its name before scikit-learn 1.9.",
}

#: Attributes of fits to labels, to one or several targets, to one target; and those that some fits add.
ATTRIBUTES: dict[str, Entries] = {
    "classes": {
        "coef_": "array of shape (1, d), or (classes, d)",
        "intercept_": "array of shape (1,), or (classes,)",
        "dual_coef_": "array of shape (1, n), or (classes, n)\n    The certificate's multipliers, in the mean form.",
        "classes_": "array of the labels",
        "certificate_": "Certificate\n    Of the objective; summed over the classes if each has a problem.",
        "trace_": "Trace, or a list of them",
        "n_iter_": "int, or an array of the steps of each problem",
    },
    "kernel_classes": {
        "support_": "array of indices\n    The samples with a coefficient.",
        "support_vectors_": "array or CSR matrix\n    Their features; empty for a precomputed kernel.",
        "dual_coef_": (
            "array of shape (1, support), or (classes, support)\n    Coefficients beta of f = sum_j beta_j k(x_j, .)."
        ),
        "intercept_": "array of shape (1,), or (classes,)",
        "alpha_": "array of shape (1, n), or (classes, n)\n    The certificate's multipliers, in the mean form.",
        "kernel_": "Kernel\n    With gamma as a number.",
        "classes_": "array of the labels",
        "certificate_": "Certificate\n    Of the objective; summed over the classes.",
        "trace_": "Trace, or a list of them",
        "n_iter_": "int, or an array of the steps of each problem",
    },
    "targets": {
        "coef_": "array of shape (d,), or (targets, d)",
        "intercept_": "float, or array of shape (targets,)",
        "dual_coef_": "array of shape (n,), or (targets, n)\n    The certificate's multipliers, in the mean form.",
        "certificate_": "Certificate\n    Of the objective; summed over the targets.",
        "trace_": "Trace, or a list of them",
        "n_iter_": "int, or an array of the steps for each target",
    },
    "target": {
        "coef_": "array of shape (d,)",
        "intercept_": "float",
        "dual_coef_": "array of shape (n,)\n    The certificate's multipliers, in the mean form.",
        "certificate_": "Certificate",
        "trace_": "Trace",
        "n_iter_": "int",
    },
    "zeros": {
        "certified_zeros_": (
            "array of booleans, of the shape of `coef_`\n    Which weights are proven to be zero in the exact optimum."
        )
    },
    "sparse": {
        "sparse_coef_": "sparse matrix of shape (targets, d)",
        "dual_gap_": "float, or array of shape (targets,)\n    The certified gap.",
    },
    "margins": {
        "certificate_": "InterpolationCertificate\n    Of |w|_p^2 / 2; summed over the classes.",
        "margin_": (
            "float, or array of shape (classes,)\n"
            "    min_i y_i (x_i.w + b) / |w|_p, negative if a sample is on the wrong side."
        ),
        "n_mistakes_": (
            "array, or a list of them\n"
            "    Training samples on the wrong side after each pass: of the model that is the best so far."
        ),
        "p_": "float\n    The p of the norm.",
    },
    "margin_interval": {
        "coef_": (
            "array of shape (1, d), or (classes, d)\n    Scaled so that the least difference of scores is 1, if it is "
            "positive. Not with a kernel."
        ),
        "dual_coef_": (
            "array of shape (1, len(support_))\n    With a kernel: the coefficients of f at the samples of `support_`, "
            "scaled likewise."
        ),
        "support_vectors_": "array or sparse matrix\n    With a kernel: the rows of `support_`.",
        "kernel_": "Kernel\n    With a kernel: with its parameters as numbers.",
        "intercept_": "array of shape (1,), or (classes,)",
        "classes_": "array of the labels",
        "margin_interval_": "MarginInterval\n    The margin of this model, and what no linear classifier exceeds.",
        "separable_": '{"proven", "refuted", "unknown"}\n    Whether a linear classifier separates the samples.',
        "support_": (
            "array of integers\n    The samples that may determine the model, proven for 1 < p <= 2; else those with\n"
            "    positive multipliers; with a kernel those with coefficients."
        ),
    },
    "alpha_path": {
        "alpha_": "float",
        "alphas_": "array of shape (alphas,)",
        "mse_path_": "array of shape (alphas, folds)",
    },
}


@dataclass_transform(eq_default=False)
def documented(*kinds: str) -> Callable[[Kind], Kind]:
    """Make the fields of an estimator its parameters, and complete its docstring with the shared entries.

    Its attributes are those of the given kinds in `ATTRIBUTES`. Entries of the docstring override shared ones; a
    parameter without an entry is an error.
    """

    def complete(kind: Kind) -> Kind:
        text = kind.__doc__
        dataclass(eq=False, repr=False)(kind)
        init = vars(kind)["__init__"]
        init.__signature__ = _ordered(inspect.signature(init))
        if text is None:  # python -OO
            return kind
        head, parameters, own_attributes, tail = _sections(inspect.cleandoc(text))
        attributes = {name: entry for each in kinds for name, entry in ATTRIBUTES[each].items()}
        sections = {
            "Parameters": _merged(parameters, _shared_parameters(kind), f"parameters of {kind.__name__}"),
            "Attributes": _merged(own_attributes, attributes, f"attributes of {kind.__name__}"),
        }
        middle = [f"{name}\n{'-' * len(name)}\n{lines}" for name, lines in sections.items()]
        kind.__doc__ = "\n\n".join([head, *middle, tail]).rstrip() + "\n"
        return kind

    return complete


def _ordered(signature: inspect.Signature) -> inspect.Signature:
    """The signature with shared keywords last, in the order of `PARAMETERS`."""
    order = list(PARAMETERS)

    def place(parameter: inspect.Parameter) -> int:
        is_shared = parameter.kind is parameter.KEYWORD_ONLY and parameter.name in order
        return order.index(parameter.name) if is_shared else -1

    return signature.replace(parameters=sorted(signature.parameters.values(), key=place))


def _shared_parameters(kind: type) -> Entries:
    """The shared entry of each parameter of the signature, with its default; empty if there is none."""
    entries = {}
    for name, parameter in inspect.signature(kind).parameters.items():
        first, _, rest = PARAMETERS.get(name, "").partition("\n")
        if first and parameter.default is not None:
            default = repr(parameter.default).replace("'", '"')
            first = f"{first}, default {default}"
        entries[name] = f"{first}\n{rest}" if rest else first
    return entries


def _sections(text: str) -> tuple[str, str, str, str]:
    """The text before the two sections, the sections, and the text after them."""
    head, *rest = re.split(r"\n(Parameters|Attributes|Notes|Examples)\n-+\n", text)
    bodies = dict(zip(rest[::2], rest[1::2], strict=True))
    tail = [f"{name}\n{'-' * len(name)}\n{bodies[name].strip()}" for name in ("Notes", "Examples") if name in bodies]
    return head.strip(), bodies.get("Parameters", ""), bodies.get("Attributes", ""), "\n\n".join(tail)


def _merged(own: str, shared: Entries, of: str) -> str:
    """The shared entries in their order, each overridden by the docstring's own; then its other entries."""
    entries = [entry.rstrip() for entry in re.split(r"\n(?=\S)", own.strip()) if entry.strip()]
    names = [[name.strip() for name in entry.partition("\n")[0].partition(" :")[0].split(",")] for entry in entries]
    done: list[str] = []
    for name, entry in shared.items():
        place = next((k for k, some in enumerate(names) if name in some), None)
        line = f"{name} : {entry}" if place is None else entries[place]
        if place is None and not entry:
            raise TypeError(f"{name} is not documented among the {of}")
        if line not in done:
            done.append(line)
    return "\n".join([*done, *(entry for entry in entries if entry not in done)])
