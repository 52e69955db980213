// Stochastic gradient descent with steps 1/(lam t) for the mean loss + lam/2 |w|^2: one pass over samples in a given order.
//
// Step t shrinks the weights by 1 - 1/t and adds -g_i x_i / (lam t), the mean over a batch. So lam t w_t is a sum of rows:
// w = f v / (lam t) with a scalar f, and a step costs only its rows. f is 1 until a projection onto the ball |w| <= radius
// shortens w (Pegasos, Shalev-Shwartz, Singer and Srebro 2007).
// The weight of a constant column is stored after the entries of v.
#pragma once
#include "ascent/dual_ascent.hpp"

namespace fenchel {

struct SgdOptions {
    double lam, W, constant, radius;  // W = mean weight of a sample, so that s_i / W has the mean 1
    Index batch;
};

// v, f and the sum of the iterates so far, stored as total v - held: a row counts from the step in which it enters v.
struct Iterate {
    double *v, *held;
    Index width;
    double f = 1, total = 0, squared = 0;  // squared = |v|^2, updated only if there is a radius

    void measure() {
        squared = 0;
        for (Index j = 0; j <= width; ++j) squared += v[j] * v[j];
    }
    // Reset f to 1 before it becomes small.
    void fold() {
        for (Index j = 0; j <= width; ++j) {
            if (held) held[j] -= total * v[j];
            v[j] *= f;
        }
        squared *= f * f, f = 1, total = 0;
    }
    // held becomes the sum of the iterates.
    void finish() {
        fold();
        if (held)
            for (Index j = 0; j <= width; ++j) held[j] = -held[j];
    }
    template <class Line>
    double score(const Line &x, double constant) const {
        return dot(x, v) + constant * v[width];
    }
    template <class Line>
    void move(const Line &x, double constant, double a) {
        add(x, a, v), v[width] += a * constant;
        if (held) add(x, a * total, held), held[width] += a * total * constant;
    }
    void project(double scale, double radius) {  // w = scale f v
        const double norm = scale * f * std::sqrt(std::max(squared, 0.0));
        if (norm > radius) f *= radius / norm;
        if (f < 1e-3) fold();  // total v - held would cancel
    }
};

// One pass from step t on, with q_i = |x_i|^2; returns the number of steps made since the beginning.
template <class Loss, class Matrix>
Index descend(const Loss &loss, const Matrix &rows, const Samples &data, const SgdOptions &options, const Index *order, Index size, Index t, double *v,
              double *held) {
    Iterate w{v, held, rows.width};
    const bool projects = options.radius < infinity;
    if (projects) w.measure();
    std::vector<double> slope(std::min(options.batch, size));
    for (Index first = 0; first < size; first += options.batch) {
        const Index count = std::min(options.batch, size - first);
        const double scale = t > 0 ? w.f / (options.lam * static_cast<double>(t)) : 0.0;
        for (Index k = 0; k < count; ++k) {
            prefetch_samples(rows, data, data.y, order, first + k, size);
            const Index i = order[first + k];
            const double z = scale * w.score(rows.line(i), options.constant);
            slope[k] = data.s[i] / options.W * loss.derivative(z, data.y[i]) / static_cast<double>(count);
        }
        ++t;
        for (Index k = 0; k < count; ++k) {
            if (slope[k] == 0) continue;
            const Index i = order[first + k];
            const auto x = rows.line(i);
            const double a = -slope[k] / w.f;
            if (projects) w.squared += a * (2 * w.score(x, options.constant) + a * data.q[i]);
            w.move(x, options.constant, a);
        }
        const double next = 1 / (options.lam * static_cast<double>(t));
        if (projects) w.project(next, options.radius);
        w.total += w.f * next;
    }
    w.finish();
    return t;
}

}  // namespace fenchel
