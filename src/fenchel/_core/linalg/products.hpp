// Matrix-vector products in float64, each with the sum of absolute values that bounds its rounding error.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>

#include "linalg/storage.hpp"

namespace fenchel {

// Sums of products, in any order: a bound on the rounding error needs only the number of additions (`gather`).

// For anything with operator[]; pointers, constant or not, have the functions below.
template <bool in_order = false, class Line, class Values>
    requires(!std::is_pointer_v<Values>)
double dot(const Line &x, const Values &w) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (Index k = 0; k < x.size; ++k) sum += static_cast<double>(x.value[k]) * w[x.index(k)];
    return sum;
}

// With indices that need no computation the compiler loads neighbours at once. An addition waits for the one before: in long lines
// sixteen sums, four vector registers, take turns.
template <bool in_order = false, class T>
double dot(const DenseLine<T> &x, const double *w) {
    constexpr Index lanes = 16, longer = 128;
    const T *value = x.value;
    double sum = 0;
    Index k = 0;
    if (x.size >= longer) {
        double sums[lanes] = {};
        for (; k + lanes <= x.size; k += lanes) {
#pragma omp simd
            for (Index j = 0; j < lanes; ++j) sums[j] += static_cast<double>(value[k + j]) * w[k + j];
        }
        for (const double each : sums) sum += each;
    }
#pragma omp simd reduction(+ : sum)
    for (Index j = k; j < x.size; ++j) sum += static_cast<double>(value[j]) * w[j];
    return sum;
}

// Lines are short: four scalar sums are faster than vector gathers.
template <bool in_order = false, class T, class I, class Values>
double dot(const SparseLine<T, I> &x, const Values w) {  // by value: a pointer is then not read again
    const auto term = [&](Index k) { return static_cast<double>(x.value[k]) * w[x.index(k)]; };
    double a = 0, b = 0, c = 0, d = 0;
    const auto four = [&](Index k) { a += term(k), b += term(k + 1), c += term(k + 2), d += term(k + 3); };
    Index k = 0;
    if constexpr (in_order)
        for (; k + 7 < x.size; k += 8) x.prefetch_after(k), four(k), four(k + 4);
    for (; k + 3 < x.size; k += 4) four(k);
    for (; k < x.size; ++k) a += term(k);
    return (a + b) + (c + d);
}

// The same, and the sum of absolute values.
template <bool in_order = false, class T, class I>
std::pair<double, double> bounded_dot(const SparseLine<T, I> &x, const double *w) {
    double a = 0, b = 0, c = 0, d = 0, size_a = 0, size_b = 0, size_c = 0, size_d = 0;
    const auto add = [&](Index k, double &sum, double &size) {
        const double term = static_cast<double>(x.value[k]) * w[x.index(k)];
        sum += term, size += std::fabs(term);
    };
    const auto four = [&](Index k) { add(k, a, size_a), add(k + 1, b, size_b), add(k + 2, c, size_c), add(k + 3, d, size_d); };
    Index k = 0;
    if constexpr (in_order)
        for (; k + 7 < x.size; k += 8) x.prefetch_after(k), four(k), four(k + 4);
    for (; k + 3 < x.size; k += 4) four(k);
    for (; k < x.size; ++k) add(k, a, size_a);
    return {(a + b) + (c + d), (size_a + size_b) + (size_c + size_d)};
}

template <bool in_order = false, class T>
std::pair<double, double> bounded_dot(const DenseLine<T> &x, const double *w) {
    const T *value = x.value;
    const Index size = x.size;
    double sum = 0, absolute = 0;
#pragma omp simd reduction(+ : sum, absolute)
    for (Index k = 0; k < size; ++k) {
        const double term = static_cast<double>(value[k]) * w[k];
        sum += term;
        absolute += std::fabs(term);
    }
    return {sum, absolute};
}

template <class Line>
void prefetch_after(const Line &x) {
    for (Index k = 0; k < x.size; k += 8) x.prefetch_after(k);
}

template <class Line>
void add(const Line &x, double a, double *out) {
    for (Index k = 0; k < x.size; ++k) out[x.index(k)] += a * static_cast<double>(x.value[k]);
}

// The same for lines that are visited in random order. The indices of a line are distinct (a Design sums duplicates), which the compiler
// cannot know: four loads need not wait for the stores before them. In short lines that does not pay.
template <class T>
void add_by_fours(const DenseLine<T> &x, double a, double *out) {
    add(x, a, out);
}
template <class T, class I>
void add_by_fours(const SparseLine<T, I> &x, double a, double *out) {
    constexpr Index longer = 32;
    if (x.size < longer) return add(x, a, out);
    const auto sum = [&](Index k) { return out[x.index(k)] + a * static_cast<double>(x.value[k]); };
    Index k = 0;
    for (; k + 3 < x.size; k += 4) {
        const double first = sum(k), second = sum(k + 1), third = sum(k + 2), fourth = sum(k + 3);
        out[x.index(k)] = first, out[x.index(k + 1)] = second, out[x.index(k + 2)] = third, out[x.index(k + 3)] = fourth;
    }
    for (; k < x.size; ++k) out[x.index(k)] = sum(k);
}

template <bool in_order, class Matrix>
void gather_range(const Matrix &A, const double *w, double *out, double *bound, Index start, Index stop) {
    if (bound)
        for (Index i = start; i < stop; ++i) std::tie(out[i], bound[i]) = bounded_dot<in_order>(A.line(i), w);
    else
        for (Index i = start; i < stop; ++i) out[i] = dot<in_order>(A.line(i), w);
}

// out[i] = line_i . w, and bound[i] = sum_k |line_ik w_k| if `bound` is given.
// Returns the largest number of additions per term (depth): |error| <= gamma_depth * bound, in whatever order they are made.
template <class Matrix>
Index gather(const Matrix &A, const double *w, double *out, double *bound, Index threads) {
    const auto product = A.outgrows_cache() ? gather_range<true, Matrix> : gather_range<false, Matrix>;
    parallel(threads, [&](Index part) { product(A, w, out, bound, A.split(part, threads), A.split(part + 1, threads)); });
    return A.longest_line() + 1;
}

// Adds a_i line_i for start <= i < stop into `sum`, if Bound interleaved with |a_i line_i|, in the same cache line.
template <bool Bound, class Matrix>
void scatter_block(const Matrix &A, const double *a, Index start, Index stop, double *sum) {
    const bool far = A.outgrows_cache();
    for (Index i = start; i < stop; ++i) {
        if (a[i] == 0) continue;
        const auto x = A.line(i);
        const double ai = a[i];
        if (far) prefetch_after(x);
        if constexpr (Bound) {
            for (Index k = 0; k < x.size; ++k) {
                const double term = ai * static_cast<double>(x.value[k]);
                double *pair = sum + 2 * x.index(k);
                pair[0] += term;
                pair[1] += std::fabs(term);
            }
        } else {
            add(x, ai, sum);
        }
    }
}

// out = sum_i a_i line_i, and bound = sum_i |a_i line_i| if given; blocked, to keep the depth, and with it the rounding bound,
// small for long matrices. Returns the depth.
template <bool Bound, class Matrix>
Index scatter_as(const Matrix &A, const double *a, double *out, double *bound, Index threads) {
    constexpr Index wide = Bound ? 2 : 1;
    const Index size = wide * A.width;
    const Index mean_line = std::max<Index>(1, A.entries() / std::max<Index>(1, A.lines));
    const Index block = std::max<Index>(256, 16 * A.width / mean_line);
    std::vector<std::vector<double>> sums(threads);
    std::vector<Index> depth(threads, 0);
    parallel(threads, [&](Index part) {
        auto &total = sums[part];
        total.assign(size, 0.0);
        const Index start = A.split(part, threads), stop = A.split(part + 1, threads);
        if (stop - start <= block) {
            scatter_block<Bound>(A, a, start, stop, total.data());
            depth[part] = stop - start;
            return;
        }
        std::vector<double> partial(size);
        for (Index i = start; i < stop; i += block) {
            std::fill(partial.begin(), partial.end(), 0.0);
            scatter_block<Bound>(A, a, i, std::min(i + block, stop), partial.data());
            for (Index j = 0; j < size; ++j) total[j] += partial[j];
        }
        depth[part] = block + (stop - start) / block + 1;
    });
    for (Index j = 0; j < A.width; ++j) {
        double sum = 0, absolute = 0;
        for (const auto &total : sums) {
            sum += total[wide * j];
            if constexpr (Bound) absolute += total[2 * j + 1];
        }
        out[j] = sum;
        if constexpr (Bound) bound[j] = absolute;
    }
    return *std::max_element(depth.begin(), depth.end()) + threads + 1;
}

template <class Matrix>
Index scatter(const Matrix &A, const double *a, double *out, double *bound, Index threads) {
    return bound ? scatter_as<true>(A, a, out, bound, threads) : scatter_as<false>(A, a, out, bound, threads);
}

// The p-norm of a vector in a form that neither overflows nor underflows: largest * root(sum of scaled powers).
inline double root(double sum, double p) { return std::isinf(p) ? 1.0 : (p == 1 ? sum : (p == 2 ? std::sqrt(sum) : std::pow(sum, 1 / p))); }
inline double scaled_power(double x, double largest, double p) {
    const double ratio = x / largest;
    return p == 2 ? ratio * ratio : (p == 1 ? ratio : std::pow(ratio, p));
}

// (sum_k |x_k|^p)^(1/p), max |x_k| for p = inf.
template <class Line>
double line_norm(const Line &x, double p) {
    double largest = 0, sum = 0;
    if (p == 2) {
#pragma omp simd reduction(+ : sum)
        for (Index k = 0; k < x.size; ++k) sum += static_cast<double>(x.value[k]) * static_cast<double>(x.value[k]);
        if (sum > 1e-280 && sum < 1e280) return std::sqrt(sum);  // neither overflow nor underflow
        sum = 0;
    }
    for (Index k = 0; k < x.size; ++k) largest = std::max(largest, std::fabs(static_cast<double>(x.value[k])));
    if (largest > 0 && !std::isinf(p))
        for (Index k = 0; k < x.size; ++k) sum += scaled_power(std::fabs(static_cast<double>(x.value[k])), largest, p);
    return largest * root(sum, p);
}

// The same with weights: out[i] = (sum_k s_k |A_ik|^p)^(1/p) along each line, max over k with s_k > 0 for p = inf.
template <class Matrix>
void line_norms(const Matrix &A, double p, const double *s, double *out) {
    for (Index i = 0; i < A.lines; ++i) {
        const auto x = A.line(i);
        if (!s) {
            out[i] = line_norm(x, p);
            continue;
        }
        double largest = 0, sum = 0;
        for (Index k = 0; k < x.size; ++k)
            if (s[x.index(k)] > 0) largest = std::max(largest, std::fabs(static_cast<double>(x.value[k])));
        if (largest > 0 && !std::isinf(p))
            for (Index k = 0; k < x.size; ++k)
                if (s[x.index(k)] > 0) sum += s[x.index(k)] * scaled_power(std::fabs(static_cast<double>(x.value[k])), largest, p);
        out[i] = largest * root(sum, p);
    }
}

template <class T>
void add_squares(const DenseLine<T> &x, double weight, double *sum) {
#pragma omp simd
    for (Index k = 0; k < x.size; ++k) sum[k] += weight * static_cast<double>(x.value[k]) * static_cast<double>(x.value[k]);
}

template <class T, class I>
void add_squares(const SparseLine<T, I> &x, double weight, double *sum) {
    for (Index k = 0; k < x.size; ++k) sum[x.index(k)] += weight * static_cast<double>(x.value[k]) * static_cast<double>(x.value[k]);
}

// out[j] = (sum_i s_i |A_ij|^p)^(1/p) across lines, max over i with s_i > 0 for p = inf; of all columns, or of those where `redo` is set.
template <class Matrix>
void scaled_norms(const Matrix &A, double p, const double *s, const std::vector<char> *redo, double *out) {
    std::vector<double> largest(A.width, 0.0), sum(A.width, 0.0);
    const auto each = [&](auto &&visit) {
        for (Index i = 0; i < A.lines; ++i) {
            if (s[i] == 0) continue;
            const auto x = A.line(i);
            for (Index k = 0; k < x.size; ++k) {
                const Index j = x.index(k);
                if (!redo || (*redo)[j]) visit(s[i], j, std::fabs(static_cast<double>(x.value[k])));
            }
        }
    };
    each([&](double, Index j, double value) { largest[j] = std::max(largest[j], value); });
    const bool empty = redo && std::all_of(largest.begin(), largest.end(), [](double value) { return value == 0; });
    if (!std::isinf(p) && !empty)
        each([&](double weight, Index j, double value) {
            if (value > 0) sum[j] += weight * scaled_power(value, largest[j], p);
        });
    for (Index j = 0; j < A.width; ++j)
        if (!redo || (*redo)[j]) out[j] = largest[j] * root(sum[j], p);
}

template <class Matrix>
void across_norms(const Matrix &A, double p, const double *s, double *out) {
    if (p != 2) return scaled_norms(A, p, s, nullptr, out);
    std::vector<double> sum(A.width, 0.0);
    for (Index i = 0; i < A.lines; ++i) add_squares(A.line(i), s[i], sum.data());
    std::vector<char> redo(A.width);
    bool any = false;
    for (Index j = 0; j < A.width; ++j) {
        redo[j] = !(sum[j] > 1e-280 && sum[j] < 1e280);  // overflow, underflow, or empty
        any |= redo[j];
        out[j] = std::sqrt(sum[j]);
    }
    if (any) scaled_norms(A, p, s, &redo, out);
}

struct EntryCheck {
    Index first_nonfinite = -1;  // position of the first NaN or infinity, or -1
    double largest = 0;          // the largest |x|, where all are finite
};

template <class T>
EntryCheck check_entries(const T *x, Index size, Index threads) {
    std::vector<EntryCheck> found(threads);
    constexpr Index block = 4096;
    parallel(threads, [&](Index part) {
        const Index stop = size * (part + 1) / threads;
        T largest = 0;
        for (Index start = size * part / threads; start < stop; start += block) {
            const Index end = std::min(start + block, stop);
            T poison = 0;  // x * 0 is 0 for every finite x and NaN otherwise
#pragma omp simd reduction(+ : poison) reduction(max : largest)
            for (Index k = start; k < end; ++k) {
                poison += x[k] * T{0};
                largest = std::max(largest, std::fabs(x[k]));
            }
            if (poison == 0) continue;
            for (Index k = start; k < end; ++k)
                if (!std::isfinite(x[k])) {
                    found[part].first_nonfinite = k;
                    return;
                }
        }
        found[part].largest = static_cast<double>(largest);
    });
    EntryCheck all;
    for (const EntryCheck &part : found) {
        if (part.first_nonfinite >= 0) return part;
        all.largest = std::max(all.largest, part.largest);
    }
    return all;
}

}  // namespace fenchel
