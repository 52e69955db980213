"""ONNX of our estimators inside pipelines: skl2onnx converts their twins in scikit-learn.

scikit-learn's converter, registered for a class of ours, writes wrong probabilities: for a class that it does not know
it ends in a softmax of (-z, z), the logistic function of 2 z. `register` puts the twin in the place of the model before
any converter sees it.
"""

from __future__ import annotations

from typing import Any

from fenchel.estimator.base import LinearPredictor

CLASSIFIER_OPTIONS = {
    "zipmap": [True, False, "columns"],
    "nocl": [True, False],
    "output_class_labels": [False, True],
    "raw_scores": [True, False],
}


def register() -> None:
    """Let `skl2onnx.to_onnx` take our linear estimators, alone and in pipelines."""
    from skl2onnx import update_registered_converter
    from skl2onnx._parse import parse_sklearn

    def parse(scope: Any, model: LinearPredictor, inputs: Any, custom_parsers: Any = None) -> Any:
        twin = model.to_sklearn()
        if scope.options and id(model) in scope.options:
            scope.options[id(twin)] = scope.options[id(model)]
        return parse_sklearn(scope, twin, inputs, custom_parsers)

    def shape(operator: Any) -> None:
        raise NotImplementedError("a twin is converted in the place of this model")

    def convert(scope: Any, operator: Any, container: Any) -> None:
        raise NotImplementedError("a twin is converted in the place of this model")

    for kind in _linear_estimators():
        options = CLASSIFIER_OPTIONS if hasattr(kind, "decision_function") else None
        update_registered_converter(kind, f"Fenchel{kind.__name__}", shape, convert, parser=parse, options=options)


def _linear_estimators() -> list[type]:
    import fenchel.estimator

    kinds = [getattr(fenchel.estimator, name) for name in fenchel.estimator.__all__]
    return [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, LinearPredictor)]
