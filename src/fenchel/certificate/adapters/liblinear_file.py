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
    """What a model file holds.

    `w` has a row for each feature, and one for the constant if bias >= 0; and a column for each class, or one for two.
    """

    solver: str
    classes_: NDArray[Any]
    features: int
    bias: float
    w: Vector

    def weights(self, width: int) -> tuple[list[Vector], Vector | None]:
        """The columns of w for a design of that width, and the intercepts if the design has no constant column."""
        columns = [np.ascontiguousarray(column) for column in self.w.T]
        if self.w.shape[0] == width:
            return columns, None
        if self.bias == 0.0 and np.any(self.w[-1] != 0.0):
            raise ValueError("the model has bias 0 and yet a weight for the constant column, which is then all zeros")
        cut = [column[:width] for column in columns]
        return cut, self.bias * self.w[-1] if self.bias > 0.0 else None

    def reversed(self) -> ModelFile:
        """The labels in the other order."""
        return replace(self, classes_=self.classes_[::-1])


def read_model(path: str | os.PathLike[str]) -> ModelFile:
    """Read a file that LIBLINEAR's train wrote.

    Raises
    ------
    ValueError
        For a file that is none.
    """
    with open(path, encoding="utf-8") as file:
        header: dict[str, list[str]] = {}
        for line in file:
            key, *values = line.split() or [""]
            if key == "w":
                break
            header[key] = values
        else:
            raise ValueError(f"{os.fspath(path)} is no LIBLINEAR model file: it has no line 'w'")
        rows = [line.split() for line in file if line.strip()]
    try:
        solver = header["solver_type"][0]
        features, bias = int(header["nr_feature"][0]), float(header["bias"][0])
        classes = np.array([int(label) for label in header.get("label", [])])
        w = np.array(rows, dtype=np.float64)
        height = features + (bias >= 0.0)
        if w.ndim != 2 or len(w) != height:
            raise ValueError(f"{len(rows)} rows of weights, but nr_feature and bias make {height}")
    except (KeyError, IndexError, ValueError) as error:
        raise ValueError(f"{os.fspath(path)} is no LIBLINEAR model file ({error})") from error
    return ModelFile(solver, classes, features, bias, w)
