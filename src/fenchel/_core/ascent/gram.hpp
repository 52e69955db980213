// Rows of a Gram matrix in place of rows of features, for functions f = sum_j v_j k(x_j, .).
//
// Dual ascent keeps the scores f(x_i) of all samples, so that a visit reads one number, and a step of sample i adds a multiple of row i
// to them. Stochastic gradients keep the coefficients v, so that a visit is a product with a row, and a step changes one number.
#pragma once
#include "ascent/primal_gradient.hpp"

namespace fenchel {

// Row of a sample, whose own column is `place`.
struct GramRow {
    const double *value;
    Index size, place;
};

// Row k is that of the sample in column place[k], or in column k if there is no list.
struct GramRows {
    const double *values;
    Index lines, width;
    const Index *place;
    GramRow line(Index k) const { return {values + k * width, width, place ? place[k] : k}; }
    void prefetch_start(Index) const {}
    void prefetch(Index) const {}
};

// The scores of all samples, with the intercept after them: what dual ascent keeps in place of weights.
struct SampleScores {
    double *values;
    double score(const GramRow &x, const Linear &) const { return values[x.place]; }
    double intercept(Index width) const { return values[width]; }
    void move(const GramRow &x, double a, Linear &, Index width, double shift) {
        values[width] += shift;
        double *out = values;
        const double *row = x.value;
#pragma omp simd
        for (Index k = 0; k < x.size; ++k) out[k] += a * row[k];
    }
};

// f(x) of each model, for `PrimalGradient`.
inline void dots(const GramRow &x, const Strided &v, double *out) {
    for (Index c = 0; c < v.models; ++c) {
        const double *values = v.values + c;
        double sum = 0;
#pragma omp simd reduction(+ : sum)
        for (Index k = 0; k < x.size; ++k) sum += x.value[k] * values[k * v.stride];
        out[c] = sum;
    }
}

template <std::size_t S>
void add_to_each(const GramRow &x, const std::array<double, S> a, double *values) {
    for (std::size_t c = 0; c < S; ++c) values[static_cast<std::size_t>(x.place) * S + c] += a[c];
}

inline void add_to_many(const GramRow &x, const double *a, double *values, Index stride) {
    for (Index c = 0; c < stride; ++c) values[x.place * stride + c] += a[c];
}

// |k(x, .)|^2 = k(x, x).
inline double squared_norm(const GramRow &x) { return x.value[x.place]; }

}  // namespace fenchel
