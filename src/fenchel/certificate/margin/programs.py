"""The best margin in the 1-norm and in the largest norm, as a linear program.

Maximise t subject to a_r.w + e_r.b >= t for every row, and |w|_1 <= 1 (w = u - v with u, v >= 0, sum (u + v) <= 1) or
|w_j| <= 1. The multipliers of the rows are q. Both are computed by HiGHS; what they prove is computed elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from fenchel.certificate.margin.question import MarginQuestion, Model
from fenchel.data.typing import Vector


@dataclass(frozen=True)
class ProgramTuning:
    """What a linear program may cost before reweighted problems take its place.

    `python -m benchmarks.tuning certificate.margin.programs most_entries 0.0 --rows "^m.* digits 2 p=(1$|1 |inf)"`:
    without programs the largest margins take 50 times as long for p = 1 and 94 times for p = inf, and miss the
    tolerance; the interval for p = 1 takes 46 times as long. The limit itself bounds the matrix: 12 bytes for each of
    4e6 entries, twice as many for p = 1, are 96 MB, before HiGHS copies them. The others are not measured.
    """

    most_entries: float = 4e6  # of its matrix
    most_rows: int = 4000  # or columns, the fewer of them
    iterations: int = 200_000
    share: float = 0.5  # of the time that is left: a program that is broken off leaves nothing, reweighted problems do


TUNING = ProgramTuning()


def fits(question: MarginQuestion) -> bool:
    """Whether the program is small enough."""
    rows, columns = question.n_constraints, int(np.prod(question.shape))
    small = min(rows, columns) <= TUNING.most_rows
    return small and (question.k - 1) * 2.0 * question.design.nnz <= TUNING.most_entries


def linear_program(question: MarginQuestion, seconds: float | None = None) -> tuple[Model, Vector] | None:
    """Weights and multipliers, or None where HiGHS fails, or is not done within a share of the seconds."""
    from scipy.optimize import linprog

    A, E = question.rows
    (rows, d), m = A.shape, E.shape[1]
    size = float(np.abs(A.data).max(initial=0.0))
    if not 0.0 < size < np.inf:
        return None
    A, ones = A / size, np.ones((rows, 1))
    one_norm = question.p == 1.0
    weights = sp.hstack([-A, A]) if one_norm else -A
    matrix, right = sp.hstack([weights, -E, sp.csr_array(ones)], format="csr"), np.zeros(rows)
    bounds: list[tuple[float | None, float | None]] = [(0.0, None)] * (2 * d) if one_norm else [(-1.0, 1.0)] * d
    bounds += [(None, None)] * (m + 1)
    if one_norm:
        length = sp.csr_array(np.concatenate([np.ones(2 * d), np.zeros(m + 1)])[None, :])
        matrix, right = sp.vstack([matrix, length], format="csr"), np.append(right, 1.0)
    cost = np.zeros(matrix.shape[1])
    cost[-1] = -1.0
    options: dict[str, Any] = {"maxiter": TUNING.iterations}
    if seconds is not None:
        options["time_limit"] = TUNING.share * seconds
    found = linprog(cost, A_ub=matrix, b_ub=right, bounds=bounds, method="highs", options=options)
    if found.x is None or found.ineqlin is None:
        return None
    w = found.x[:d] - found.x[d : 2 * d] if one_norm else found.x[:d]
    b = found.x[-1 - m : -1] * size if m else np.zeros(1 if question.is_binary else question.k)
    return Model(w.reshape(question.shape), b), np.maximum(-np.asarray(found.ineqlin.marginals[:rows]), 0.0)
