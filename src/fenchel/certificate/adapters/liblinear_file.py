"""The text format of LIBLINEAR's model files."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fenchel.data.typing import Vector


@dataclass(frozen=True, eq=False)
class ModelFile:
    """The contents of a model file.

    `w` has a row for each feature, and one for the constant if bias >= 0; a column for each class, or one for two.
    """

    solver: str
    classes_: NDArray[Any]
    features: int
    bias: float
    w: Vector

    def weights(self, width: int) -> tuple[list[Vector], Vector | None]:
        """The columns of w for a design with `width` columns, and the intercepts if it has no constant column."""
        columns = [np.ascontiguousarray(column) for column in self.w.T]
        if self.w.shape[0] == width:
            return columns, None
        if self.bias == 0.0 and np.any(self.w[-1] != 0.0):
            raise ValueError("the model has bias 0, but a nonzero weight for the constant column")
        cut = [column[:width] for column in columns]
        return cut, self.bias * self.w[-1] if self.bias > 0.0 else None

    def reversed(self) -> ModelFile:
        """The same model with the labels in reverse order."""
        return replace(self, classes_=self.classes_[::-1])


def read_model(path: str | os.PathLike[str]) -> ModelFile:
    """Read a file written by LIBLINEAR's train."""
    with open(path, encoding="utf-8") as file:
        header: dict[str, list[str]] = {}
        for line in file:
            key, *values = line.split() or [""]
            if key == "w":
                break
            header[key] = values
        else:
            raise ValueError(f"{os.fspath(path)} is not a LIBLINEAR model file: it has no line 'w'")
        rows = [line.split() for line in file if line.strip()]
    try:
        solver = header["solver_type"][0]
        features, bias = int(header["nr_feature"][0]), float(header["bias"][0])
        classes = np.array([int(label) for label in header.get("label", [])])
        w = np.array(rows, dtype=np.float64)
        height = features + (bias >= 0.0)
        if w.ndim != 2 or len(w) != height:
            raise ValueError(f"{len(rows)} rows of weights, but nr_feature and bias imply {height}")
    except (KeyError, IndexError, ValueError) as error:
        raise ValueError(f"{os.fspath(path)} is not a LIBLINEAR model file ({error})") from error
    return ModelFile(solver, classes, features, bias, w)
