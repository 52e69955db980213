// Constraints in the place of losses: the indicator of [low_i, high_i], an end may be infinite; y is the number i of the sample.
//
// Three algorithms that differ in the step of one multiplier only; with Pi the projection onto the interval:
//
//   Within     a' = (Pi(t) - t) / q, t = z - q a   maximises  -sigma(-a') - z (a' - a) - q (a' - a)^2 / 2: dual ascent (Dykstra)
//   Mirrored   a' = a + (Pi(z) - z) / q            mirror descent on the squared distance: the same for a point, and wherever a = 0
//   Corrected  a' = a + sign / q if sign z <= 0    the perceptron, for half-lines {sign z >= bound}
//
// The conjugate is sigma, the support function. The indicator itself is 0 or infinite, so `value` is the distance to the interval.
#pragma once
#include "linalg/storage.hpp"
#include "losses/losses.hpp"

namespace fenchel {

struct Ends {
    const double *low, *high;
    Index size;
    double lower(double y) const { return low[static_cast<Index>(y)]; }
    double upper(double y) const { return high[static_cast<Index>(y)]; }
    double nearest(double z, double y) const { return clip(z, lower(y), upper(y)); }
    double value(double z, double y) const { return std::fabs(z - nearest(z, y)); }
    double conjugate(double u, double y) const { return u == 0 ? 0.0 : u * (u > 0 ? upper(y) : lower(y)); }
};

struct Within : Ends {
    // (end - t) / q = a + (end - z) / q; of the sign that the first form has, whatever the rounding of the second.
    double dual_step(double a, double z, double q, double y) const {
        const double bottom = lower(y), top = upper(y);
        if (bottom == top) return ratio_step(a, bottom - z, q);
        const double t = z - q * a;
        if (t < bottom) return std::max(0.0, ratio_step(a, bottom - z, q));
        return t > top ? std::min(0.0, ratio_step(a, top - z, q)) : 0.0;
    }
};

struct Mirrored : Ends {
    double dual_step(double a, double z, double q, double y) const { return ratio_step(a, nearest(z, y) - z, q); }
};

struct Corrected : Ends {
    double dual_step(double a, double z, double q, double y) const {
        const double sign = lower(y) > -infinity ? 1.0 : -1.0;
        return sign * z > 0 ? a : ratio_step(a, sign, q);
    }
};

}  // namespace fenchel
