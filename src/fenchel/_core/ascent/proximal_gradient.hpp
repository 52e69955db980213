// Passes of an accelerated proximal gradient step, besides products with X: two over the samples, one over the weights.
#pragma once
#include <cmath>

#include "losses/response.hpp"

namespace fenchel {

// z = now + factor (now - before) and a_i = -s_i phi'(z_i); returns sum_i a_i.
template <class Loss>
double extrapolate(const Loss &loss, const double *now, const double *before, double factor, const double *y, const double *s, Index n, double *z, double *a) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (Index i = 0; i < n; ++i) {
        z[i] = now[i] + factor * (now[i] - before[i]);
        const double term = s[i] * multiplier(loss, z[i], y[i]);
        a[i] = s[i] > 0 ? term : 0.0;
        sum += a[i];
    }
    return sum;
}

// The curvature between two points, and the sum of the absolute values of its terms, which bounds its rounding error.
struct Curvature {
    double sum, size;
};

// sum_i s_i (phi'(x_i) - phi'(z_i)) (x_i - z_i), with a_i = -s_i phi'(z_i).
template <class Loss>
Curvature curvature_between(const Loss &loss, const double *x, const double *z, const double *a, const double *y, const double *s, Index n) {
    double sum = 0, size = 0;
#pragma omp simd reduction(+ : sum, size)
    for (Index i = 0; i < n; ++i) {
        const double term = s[i] * multiplier(loss, x[i], y[i]), there = s[i] > 0 ? term : 0.0, step = x[i] - z[i];
        sum += (a[i] - there) * step;
        size += (std::fabs(a[i]) + std::fabs(there)) * std::fabs(step);
    }
    return {sum, size};
}

// |x - y|^2 and (y - x).(x - now) in the metric 1 / steps; `finite` is zero, or NaN where an entry of x is not finite.
struct ProximalStep {
    double length2, turn, finite;
};

// x = prox of sum_j threshold_j |x_j| + ridge/2 |x|^2 with the steps t steps_j, at y + t steps v, y = now + factor (now - before).
inline ProximalStep shrink(const double *now, const double *before, double factor, const double *v, const double *steps, double t, const double *threshold,
                           double ridge, Index d, double *x) {
    double length2 = 0, turn = 0, finite = 0;
#pragma omp simd reduction(+ : length2, turn, finite)
    for (Index j = 0; j < d; ++j) {
        const double y = now[j] + factor * (now[j] - before[j]), step = t * steps[j], moved = y + step * v[j];
        const double size = std::max(std::fabs(moved) - step * threshold[j], 0.0) / (1 + step * ridge);
        x[j] = size > 0 ? std::copysign(size, moved) : 0.0;
        length2 += (x[j] - y) * (x[j] - y) / steps[j];
        turn += (y - x[j]) * (x[j] - now[j]) / steps[j];
        finite += 0 * moved;
    }
    return {length2, turn, finite};
}

}  // namespace fenchel
