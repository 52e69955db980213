// Products with some lines of a matrix: what second-order methods need, without copying those lines.
#pragma once
#include "products.hpp"

namespace fenchel {

constexpr Index lines_ahead = 4;

// out[k] = line_{which[k]} . w
template <class Matrix>
void gather_some(const Matrix &A, const Index *which, Index count, const double *w, double *out, Index threads) {
    parallel(threads, [&](Index part) {
        const Index stop = count * (part + 1) / threads;
        for (Index k = count * part / threads; k < stop; ++k) {
            if (k + lines_ahead < stop) A.prefetch(which[k + lines_ahead]);
            out[k] = dot(A.line(which[k]), w);
        }
    });
}

// Adds up the parts that threads have made, each a vector of `size`.
inline void add_up(const std::vector<std::vector<double>> &parts, Index size, double *out) {
    for (const auto &part : parts)
        for (Index j = 0; j < size; ++j) out[j] += part[j];
}

// out = sum_k a_k line_{which[k]}, or sum_k a_k (line . p) line when p is given: a Gram matrix times p, in one pass.
template <class Matrix>
void scatter_some(const Matrix &A, const Index *which, Index count, const double *a, const double *p, double *out, Index threads) {
    std::vector<std::vector<double>> sums(threads);
    parallel(threads, [&](Index part) {
        sums[part].assign(A.width, 0.0);
        const Index stop = count * (part + 1) / threads;
        for (Index k = count * part / threads; k < stop; ++k) {
            if (k + lines_ahead < stop) A.prefetch(which[k + lines_ahead]);
            if (a[k] == 0) continue;
            const auto x = A.line(which[k]);
            add(x, p ? a[k] * dot(x, p) : a[k], sums[part].data());
        }
    });
    add_up(sums, A.width, out);
}

// out_j = sum_k a_k x_kj^2
template <class Matrix>
void squares_some(const Matrix &A, const Index *which, Index count, const double *a, double *out) {
    for (Index k = 0; k < count; ++k) {
        if (k + lines_ahead < count) A.prefetch(which[k + lines_ahead]);
        const auto x = A.line(which[k]);
        for (Index j = 0; j < x.size; ++j) {
            const double value = static_cast<double>(x.value[j]);
            out[x.index(j)] += a[k] * value * value;
        }
    }
}

// out[k] = sum_j x_kj^2 d_j
template <class Matrix>
void energy_some(const Matrix &A, const Index *which, Index count, const double *d, double *out) {
    for (Index k = 0; k < count; ++k) {
        if (k + lines_ahead < count) A.prefetch(which[k + lines_ahead]);
        const auto x = A.line(which[k]);
        double sum = 0;
#pragma omp simd reduction(+ : sum)
        for (Index j = 0; j < x.size; ++j) sum += static_cast<double>(x.value[j]) * static_cast<double>(x.value[j]) * d[x.index(j)];
        out[k] = sum;
    }
}

// Adds sum_k a_k x_k x_k' to the lower triangle of `out` (width x width), for short lines.
template <class Matrix>
void gram_some(const Matrix &A, const Index *which, Index count, const double *a, double *out) {
    for (Index k = 0; k < count; ++k) {
        if (k + lines_ahead < count) A.prefetch(which[k + lines_ahead]);
        if (a[k] == 0) continue;
        const auto x = A.line(which[k]);
        for (Index i = 0; i < x.size; ++i) {
            const double xi = a[k] * static_cast<double>(x.value[i]);
            if (xi == 0) continue;
            const Index row = x.index(i);
            double *line = out + row * A.width;
            for (Index j = 0; j <= i; ++j) {
                const Index column = x.index(j);
                double &entry = column <= row ? line[column] : out[column * A.width + row];
                entry += xi * static_cast<double>(x.value[j]);
            }
        }
    }
}

}  // namespace fenchel
