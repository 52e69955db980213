// Products with some lines of a matrix: what second-order methods need, without copying those lines.
#pragma once
#include "linalg/products.hpp"

namespace fenchel {

constexpr Index lines_ahead = 4;

// Asks for lines before they are needed. Where most lines are visited in their order the processor does so itself, and better, but
// for the ends of pages.
template <class Matrix>
struct Ahead {
    const Matrix &A;
    const Index *which;
    Index stop;
    bool few, waits;
    Ahead(const Matrix &A, const Index *which, Index count, Index stop)
        : A(A), which(which), stop(stop), few(4 * count < A.lines), waits(!few && A.outgrows_cache()) {}
    void operator()(Index k) const {
        if (few && k + lines_ahead < stop) A.prefetch(which[k + lines_ahead]);
        if (waits) prefetch_behind(A.line(which[k]));
    }
};

// out[k] = line_{which[k]} . w
template <class Matrix>
void gather_some(const Matrix &A, const Index *which, Index count, const double *w, double *out, Index threads) {
    parallel(threads, [&](Index part) {
        const Index stop = count * (part + 1) / threads;
        const Ahead ahead(A, which, count, stop);
        for (Index k = count * part / threads; k < stop; ++k) {
            ahead(k);
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
        const Ahead ahead(A, which, count, stop);
        for (Index k = count * part / threads; k < stop; ++k) {
            ahead(k);
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
    const Ahead ahead(A, which, count, count);
    for (Index k = 0; k < count; ++k) {
        ahead(k);
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
    const Ahead ahead(A, which, count, count);
    for (Index k = 0; k < count; ++k) {
        ahead(k);
        const auto x = A.line(which[k]);
        double sum = 0;
#pragma omp simd reduction(+ : sum)
        for (Index j = 0; j < x.size; ++j) sum += static_cast<double>(x.value[j]) * static_cast<double>(x.value[j]) * d[x.index(j)];
        out[k] = sum;
    }
}

// Adds a x x' to the lower triangle of `out` (width x width, column after column) for a line of increasing indices; four
// columns at a time, because loops over a few entries mostly pay for their ends.
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

// Adds sum_k a_k x_k x_k' to the lower triangle of `out`, for short lines. What unsorted indices put above the diagonal is folded
// down at the end.
template <class Matrix>
void gram_some(const Matrix &A, const Index *which, Index count, const double *a, double *out) {
    bool sorted = true;
    const Ahead ahead(A, which, count, count);
    for (Index k = 0; k < count; ++k) {
        ahead(k);
        if (a[k] == 0) continue;
        const auto x = A.line(which[k]);
        for (Index i = 1; i < x.size; ++i) sorted &= x.index(i - 1) < x.index(i);
        add_square(x, a[k], out, A.width);
    }
    if (sorted) return;
    for (Index i = 0; i < A.width; ++i)
        for (Index j = 0; j < i; ++j) out[j * A.width + i] += out[i * A.width + j];
}

}  // namespace fenchel
