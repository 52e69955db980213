// argmin_x 1/2 sum (x_i - y_i)^2 + lam sum |x_{i+1} - x_i|, exactly and in O(n) (Johnson 2013, dynamic programming).
//
// Forward: the derivative of the best cost of x_1..x_k as a function of x_k, clipped to [-lam, lam], is piecewise linear; it is kept as
// its knots. Every step adds x - y_{k+1}, cuts off what lies beyond -lam and lam, and remembers the two cuts.
// Backward: x_k is x_{k+1} clipped to the cuts of step k.
#pragma once
#include <vector>

#include "losses.hpp"
#include "storage.hpp"

namespace fenchel {

inline void total_variation(const double *y, Index n, double lam, double *x) {
    if (n == 1 || lam == 0) {
        std::copy(y, y + n, x);
        return;
    }
    struct Knot {
        double at, slope, offset;  // to the right of `at` the derivative grows by slope * x + offset
    };
    std::vector<Knot> knots(2 * n);
    std::vector<double> cut_low(n - 1), cut_high(n - 1);
    Index first = n, last = n - 1;                         // live knots: first..last
    double slope_left = 1, offset_left = -y[0];            // derivative left of all knots
    double slope_right = 1, offset_right = -y[0];          // and right of all of them
    for (Index k = 0; k < n - 1; ++k) {
        // Where the derivative is -lam, from the left; knots before that point are dropped.
        double slope = slope_left, offset = offset_left;
        while (first <= last && slope * knots[first].at + offset < -lam) {
            slope += knots[first].slope;
            offset += knots[first].offset;
            ++first;
        }
        cut_low[k] = (-lam - offset) / slope;
        const Knot low{cut_low[k], slope, offset + lam};
        // Where it is +lam, from the right.
        slope = slope_right, offset = offset_right;
        while (last >= first && slope * knots[last].at + offset > lam) {
            slope -= knots[last].slope;
            offset -= knots[last].offset;
            --last;
        }
        cut_high[k] = (lam - offset) / slope;
        const Knot high{cut_high[k], -slope, -offset + lam};
        knots[--first] = low;
        knots[++last] = high;
        slope_left = 1, offset_left = -lam - y[k + 1];
        slope_right = 1, offset_right = lam - y[k + 1];
    }
    double slope = slope_left, offset = offset_left;
    while (first <= last && slope * knots[first].at + offset < 0) {
        slope += knots[first].slope;
        offset += knots[first].offset;
        ++first;
    }
    x[n - 1] = -offset / slope;
    for (Index k = n - 2; k >= 0; --k) x[k] = clip(x[k + 1], cut_low[k], cut_high[k]);
}

}  // namespace fenchel
