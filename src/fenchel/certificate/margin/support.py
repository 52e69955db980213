"""Which samples determine the classifier with the largest margin."""

from __future__ import annotations

import numpy as np

from fenchel.certificate.bounds.rounding import DOWN, UP
from fenchel.data.products import UNIT_ROUNDOFF
from fenchel.data.typing import Mask, Vector
from fenchel.problem.margin import LargestMargin, Model
from fenchel.problem.margin.largest import NORMS
from fenchel.problem.vectors import dual_exponent

#: Relative widths of intervals beside which rounding errors matter.
NARROW = 1e-8


@np.errstate(all="ignore")
def may_determine(problem: LargestMargin, model: Model, best: float, upper: float) -> Mask | None:
    """The samples that are not proven to have no influence; None if nothing can be proven.

    The maximum-margin classifier, scaled to least differences of 1, is the w* that minimises |w|_p^2 / 2, which is
    (p - 1)-strongly convex for 1 < p <= 2. The model scaled likewise is feasible, so that

        |w - w*|_p <= rho = sqrt((1 / best^2 - 1 / upper^2) / (p - 1)).

    Let d_r be the differences of its scores without intercepts. Those of w* are within rho |a_r|_p*, and its intercepts
    satisfy b_a - b_c >= max_r (1 - d_r - rho |a_r|_p*) =: L_ac over the rows r of the classes a and c. A row with
    d_r - rho |a_r|_p* + L_ac > 1 is a constraint that w* satisfies strictly: its multiplier is zero, and w* is the
    minimiser without it.
    """
    p = problem.p
    if not (1.0 < p <= 2.0 and 0.0 < best <= upper < np.inf) or problem.has_one_class:
        return None
    tight = upper - best < NARROW * upper
    bare, bare_error = problem.differences(Model(model.w, np.zeros_like(model.b)), tight)
    shift = problem.shifts(model.b)
    value = bare + shift
    error = bare_error + 4.0 * UNIT_ROUNDOFF * (np.abs(value) + np.abs(shift))
    below, above = float(np.min(value - error)), float(np.min(value + error))
    if not below > 0.0:
        return None
    least = below * (1.0 - 4.0 * UNIT_ROUNDOFF), above * (1.0 + 4.0 * UNIT_ROUNDOFF)
    rho = np.sqrt((upper - best) / best * ((upper + best) / upper) / (p - 1.0)) / best * UP
    rows = bare.reshape(len(bare), -1)
    slack = bare_error.reshape(rows.shape)
    low = np.minimum((rows - slack) / least[0], (rows - slack) / least[1])
    high = np.maximum((rows + slack) / least[0], (rows + slack) / least[1])
    reach = (rho * NORMS * _row_norms(problem, dual_exponent(p)))[:, None]
    low, high = low - reach - 1e-15 * (np.abs(low) + reach), high + reach + 1e-15 * (np.abs(high) + reach)
    outside = low > 1.0
    if problem.intercept:
        outside = np.zeros(rows.shape, dtype=bool)
        for own in range(problem.k):
            of_class = np.flatnonzero(problem.codes == own)
            # high is at least the exact d + rho |a|: the least of them bounds the intercept's part from below
            nearest = high[of_class].min(axis=0)
            outside[of_class] = low[of_class] > nearest * np.where(nearest > 0.0, UP, DOWN)
    return np.asarray(~outside.all(axis=1))


def _row_norms(problem: LargestMargin, q: float) -> Vector:
    factor = 1.0 if problem.is_binary or np.isinf(q) else 2.0 ** (1.0 / q)
    return factor * problem.X.row_norms(q)
