// Exponentially tailed losses on the scores of all rows: gradients in one pass over the data, and sampling in proportion to them.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "linalg/products.hpp"
#include "losses/exponential.hpp"

namespace fenchel {

// exp(z), or the slope 1 / (1 + exp(-z)) of the logistic loss, both divided by exp(shift), shift >= level(z).
struct ExponentialTail {
    static double level(double z) { return z; }
    static double weight(double z, double shift) { return std::exp(z - shift); }
};
struct LogisticTail {
    static double level(double z) { return std::min(z, 0.0); }
    static double weight(double z, double shift) { return std::exp(level(z) - shift) / (1 + std::exp(-std::fabs(z))); }
};

// Weights below exp(-50) of the largest change a sum of up to 500 000 of them by less than its rounding.
constexpr double negligible = 50;

// A sum of rows with weights relative to exp(shift): the largest level so far, by which the sum is rescaled when it rises.
struct ShiftedSum {
    double shift = -std::numeric_limits<double>::infinity();
    std::vector<double> sum;

    void raise(double level) {
        const double factor = std::isinf(shift) ? 0.0 : std::exp(shift - level);
        for (double &value : sum) value *= factor;
        shift = level;
    }
};

// The rows from start to stop, for `tilted_sum`.
template <class Tail, bool in_order, class Rows>
void tilt_range(const Rows &rows, const double *w, const double *factor, const double *prior, double *z, ShiftedSum &own, Index start, Index stop) {
    for (Index i = start; i < stop; ++i) {
        z[i] = prior[i];
        if (factor[i] == 0) continue;
        const auto x = rows.line(i);
        z[i] += factor[i] * dot<in_order>(x, w);
        const double level = Tail::level(z[i]);
        if (level > own.shift) own.raise(level);
        if (level >= own.shift - negligible) add(x, factor[i] * Tail::weight(z[i], own.shift), own.sum.data());
    }
}

// z_i = factor_i x_i.w + prior_i, and v = sum_i weight(z_i) factor_i x_i / exp(shift); returns the shift, -inf without rows. A row is read
// once for both. Rows of factor 0 are left out, with the score prior_i.
template <class Tail, class Rows>
double tilted_sum(const Rows &rows, const double *w, const double *factor, const double *prior, double *z, double *v, Index threads) {
    std::vector<ShiftedSum> parts(threads);
    const auto pass = rows.outgrows_cache() ? tilt_range<Tail, true, Rows> : tilt_range<Tail, false, Rows>;
    parallel(threads, [&](Index part) {
        parts[part].sum.assign(rows.width, 0.0);
        pass(rows, w, factor, prior, z, parts[part], rows.split(part, threads), rows.split(part + 1, threads));
    });
    double shift = -std::numeric_limits<double>::infinity();
    for (const ShiftedSum &part : parts) shift = std::max(shift, part.shift);
    std::fill(v, v + rows.width, 0.0);
    if (std::isinf(shift)) return shift;
    for (const ShiftedSum &part : parts) {
        const double scale = std::exp(part.shift - shift);
        for (Index j = 0; j < rows.width; ++j) v[j] += scale * part.sum[j];
    }
    return shift;
}

// Sums of exp(z_i - shift) over blocks of scores, from which a sample is drawn in proportion to exp(z_i): nothing below exp(-700).
constexpr Index sampling_block = 256;

inline double chance(double z, double shift) { return z - shift > -700 ? exp_nonpositive(z - shift) : 0.0; }

inline Index sampling_blocks(Index n) { return (n + sampling_block - 1) / sampling_block; }

// h = momentum (h + k), z -= step (h + k); then the sums of the blocks. Returns the largest score, the shift.
inline double move_scores(const double *k, double momentum, double step, double *h, double *z, double *sums, Index n) {
    double largest = -std::numeric_limits<double>::infinity();
#pragma omp simd reduction(max : largest)
    for (Index i = 0; i < n; ++i) {
        h[i] = momentum * (h[i] + k[i]);
        z[i] -= step * (h[i] + k[i]);
        largest = std::max(largest, z[i]);
    }
    for (Index b = 0; b < sampling_blocks(n); ++b) {
        const Index stop = std::min(n, (b + 1) * sampling_block);
        double sum = 0;
#pragma omp simd reduction(+ : sum)
        for (Index i = b * sampling_block; i < stop; ++i) sum += chance(z[i], largest);
        sums[b] = sum;
    }
    return largest;
}

// The sample at the part u, 0 <= u < 1, of the sum of all exp(z_i - shift).
inline Index draw_tilted(const double *z, double shift, const double *sums, Index n, double u) {
    const Index blocks = sampling_blocks(n);
    double total = 0;
    for (Index b = 0; b < blocks; ++b) total += sums[b];
    double left = u * total;
    Index block = 0, last = 0;  // the last ones with a chance: rounding may leave a part of u beyond them
    for (Index b = 0; b < blocks; ++b) {
        if (!(sums[b] > 0)) continue;
        block = b;
        if (left < sums[b]) break;
        left -= sums[b];
    }
    const Index start = block * sampling_block, stop = std::min(n, start + sampling_block);
    for (Index i = start; i < stop; ++i) {
        const double part = chance(z[i], shift);
        if (!(part > 0)) continue;
        last = i;
        left -= part;
        if (left < 0) break;
    }
    return last;
}

}  // namespace fenchel
