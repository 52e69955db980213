"""R of SignedEntropy near the sphere, where it changes fast: its stated error covers both sides."""

from decimal import Decimal, localcontext

import numpy as np
import pytest

from fenchel.problem.penalties import SignedEntropy


def exact(w):
    """R(w) for lam = B = 1 in sixty digits: c from sum_j s_j = 1 by bisection."""
    a = [abs(Decimal(float(x))) for x in w]
    low, high = Decimal(0), Decimal(1) / (2 * len(a))
    for _ in range(250):
        c = (low + high) / 2
        low, high = (c, high) if sum((x * x + 4 * c * c).sqrt() for x in a) < 1 else (low, c)
    t = -(2 * len(a) * high).ln()
    total = -(t + (-t).exp() - 1)
    for x in a:
        y = x / (2 * high)
        total += x * (y + (y * y + 1).sqrt()).ln() - x * x / ((x * x + 4 * high * high).sqrt() + 2 * high)
    return total


@pytest.mark.parametrize("inside", [0.5, 1e-3, 1e-9, 1e-12, 1.2e-13, 1e-13, 5e-14, 1e-14, 1e-15])
@pytest.mark.parametrize("u", [[0.5, -0.25, 0.125, 0.125], [1.0, 0.0], [0.25, 0.75, -1e-9], [1.0 / 64] * 64])
def test_the_error_covers_the_value_from_both_sides(inside, u):
    w = np.array(u) / np.sum(np.abs(u)) * (1.0 - inside)
    with localcontext() as context:
        context.prec = 60
        if not sum(abs(Decimal(float(x))) for x in w) < 1:
            pytest.skip("outside by rounding")
        truth, penalty = exact(w), SignedEntropy(1.0, 1.0)
        value, upper = Decimal(penalty.value(w)), Decimal(penalty.value_upper(w))
        assert truth <= upper
        assert abs(value - truth) <= upper - value
        assert upper - value <= Decimal("1e-10")
