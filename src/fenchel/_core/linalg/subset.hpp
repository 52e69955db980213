// Products with some lines of a matrix, without copying them, for second-order methods.
#pragma once
#include "linalg/products.hpp"

namespace fenchel {

// Calls f(k, line_{which[k]}) for start <= k < stop, with prefetching. If most lines are visited in order, the hardware prefetcher is
// better, except at page boundaries.
template <class Matrix, class F>
void for_lines(const Matrix &A, const Index *which, Index count, Index start, Index stop, F &&f) {
    constexpr Index ahead = 4;
    const bool few = 4 * count < A.lines, in_order = !few && A.outgrows_cache();
    for (Index k = start; k < stop; ++k) {
        if (few && k + ahead < stop) A.prefetch(which[k + ahead]);
        const auto x = A.line(which[k]);
        if (in_order) prefetch_after(x);
        f(k, x);
    }
}

// out[k] = line_{which[k]} . w
template <class Matrix>
void gather_some(const Matrix &A, const Index *which, Index count, const double *w, double *out, Index threads) {
    parallel(threads, [&](Index part) {
        for_lines(A, which, count, count * part / threads, count * (part + 1) / threads, [&](Index k, const auto &x) { out[k] = dot(x, w); });
    });
}

// out = sum_k a_k line_{which[k]}, or sum_k a_k (line . p) line when p is given: a Gram matrix times p, in one pass.
template <class Matrix>
void scatter_some(const Matrix &A, const Index *which, Index count, const double *a, const double *p, double *out, Index threads) {
    std::vector<std::vector<double>> sums(threads);
    parallel(threads, [&](Index part) {
        sums[part].assign(A.width, 0.0);
        for_lines(A, which, count, count * part / threads, count * (part + 1) / threads, [&](Index k, const auto &x) {
            if (a[k] != 0) add(x, p ? a[k] * dot(x, p) : a[k], sums[part].data());
        });
    });
    for (const auto &sum : sums)
        for (Index j = 0; j < A.width; ++j) out[j] += sum[j];
}

// out_j = sum_k a_k x_kj^2
template <class Matrix>
void squares_some(const Matrix &A, const Index *which, Index count, const double *a, double *out) {
    for_lines(A, which, count, 0, count, [&](Index k, const auto &x) { add_squares(x, a[k], out); });
}

// out[k] = sum_j x_kj^2 d_j
template <class Matrix>
void energy_some(const Matrix &A, const Index *which, Index count, const double *d, double *out) {
    for_lines(A, which, count, 0, count, [&](Index k, const auto &x) {
        double sum = 0;
#pragma omp simd reduction(+ : sum)
        for (Index j = 0; j < x.size; ++j) sum += static_cast<double>(x.value[j]) * static_cast<double>(x.value[j]) * d[x.index(j)];
        out[k] = sum;
    });
}

// Adds a x x' to the lower triangle of `out` (width x width, by columns) for a line of increasing indices; four columns at a
// time, to reduce the overhead of short loops.
template <class Line>
void add_square(const Line &x, double a, double *out, Index width) {
    constexpr Index columns = 4;
    Index i = 0;
    for (; i + columns <= x.size; i += columns) {
        double scaled[columns], *column[columns];
        for (Index c = 0; c < columns; ++c) {
            scaled[c] = a * static_cast<double>(x.value[i + c]);
            column[c] = out + x.index(i + c) * width;
        }
        for (Index c = 0; c < columns; ++c)
            for (Index j = c; j < columns; ++j) column[c][x.index(i + j)] += scaled[c] * static_cast<double>(x.value[i + j]);
        for (Index j = i + columns; j < x.size; ++j) {
            const Index row = x.index(j);
            const double value = static_cast<double>(x.value[j]);
            for (Index c = 0; c < columns; ++c) column[c][row] += scaled[c] * value;
        }
    }
    for (; i < x.size; ++i) {
        const double scaled = a * static_cast<double>(x.value[i]);
        double *column = out + x.index(i) * width;
        for (Index j = i; j < x.size; ++j) column[x.index(j)] += scaled * static_cast<double>(x.value[j]);
    }
}

// Adds sum_k a_k x_k x_k' to the lower triangle of `out`, for short lines. Entries that unsorted indices put above the diagonal are added
// to the lower triangle at the end.
template <class Matrix>
void gram_some(const Matrix &A, const Index *which, Index count, const double *a, double *out) {
    bool sorted = true;
    for_lines(A, which, count, 0, count, [&](Index k, const auto &x) {
        if (a[k] == 0) return;
        for (Index i = 1; i < x.size; ++i) sorted &= x.index(i - 1) < x.index(i);
        add_square(x, a[k], out, A.width);
    });
    if (sorted) return;
    for (Index i = 0; i < A.width; ++i)
        for (Index j = 0; j < i; ++j) out[j * A.width + i] += out[i * A.width + j];
}

}  // namespace fenchel
