// What an accelerated proximal gradient step is made of, besides products with X: two passes over the samples, one over the weights.
#pragma once
#include <cmath>

#include "losses/response.hpp"

namespace fenchel {

// -phi'(z)
template <class Loss>
inline double multiplier(const Loss &loss, double z, double y) {
    return -loss.derivative(z, y);
}
inline double multiplier(const Logistic &loss, double z, double y) { return respond(loss, z, y, 0, 0).a; }

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

// How much the derivative turns between two points, and the size of the terms that cancel in it.
struct Bend {
    double sum, size;
};

// sum_i s_i (phi'(x_i) - phi'(z_i)) (x_i - z_i), with a_i = -s_i phi'(z_i).
template <class Loss>
Bend bend_between(const Loss &loss, const double *x, const double *z, const double *a, const double *y, const double *s, Index n) {
    double sum = 0, size = 0;
#pragma omp simd reduction(+ : sum, size)
    for (Index i = 0; i < n; ++i) {
        const double term = s[i] * multiplier(loss, x[i], y[i]), there = s[i] > 0 ? term : 0.0, way = x[i] - z[i];
        sum += (a[i] - there) * way;
        size += (std::fabs(a[i]) + std::fabs(there)) * std::fabs(way);
    }
    return {sum, size};
}

// |x - y|^2 and (y - x).(x - now) in the metric 1 / steps; `finite` is zero, or not a number where x is none.
struct Way {
    double length2, turn, finite;
};

// x = prox of sum_j threshold_j |x_j| + ridge/2 |x|^2 with the steps t steps_j, at y + t steps v, y = now + factor (now - before).
inline Way shrink(const double *now, const double *before, double factor, const double *v, const double *steps, double t, const double *threshold, double ridge,
                  Index d, double *x) {
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
