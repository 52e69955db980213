// Sums over samples for certificates: losses, conjugates and products, each with the terms of its error bound.
//
// Blocks of 64 terms are added in any order, and the sums of blocks by compensated summation (Neumaier 1974), so that a term takes
// part in at most about seventy roundings, for any number of samples.
#pragma once
#include <array>
#include <type_traits>

#include "losses/response.hpp"

namespace fenchel {

class CompensatedSum {
  public:
    void add(double x) {
        const double next = sum_ + x;
        compensation_ += std::fabs(sum_) >= std::fabs(x) ? (sum_ - next) + x : (x - next) + sum_;
        sum_ = next;
    }
    double value() const { return std::isfinite(compensation_) ? sum_ + compensation_ : sum_; }

  private:
    double sum_ = 0, compensation_ = 0;
};

constexpr Index block_size = 64;

// Sums over all i the K numbers that terms(i, k, term) writes to term[0][k], ..., term[K - 1][k], one block after the other.
template <int K, class Terms>
std::array<double, K> compensated_sums(Index n, Terms terms) {
    std::array<CompensatedSum, K> sums;
    double term[K][block_size];
    for (Index start = 0; start < n; start += block_size) {
        const Index size = std::min(block_size, n - start);
#pragma omp simd
        for (Index k = 0; k < size; ++k) terms(start + k, k, term);
        for (int j = 0; j < K; ++j) {
            double sum = 0;
#pragma omp simd reduction(+ : sum)
            for (Index k = 0; k < size; ++k) sum += term[j][k];
            sums[j].add(sum);
        }
    }
    std::array<double, K> totals;
    for (int j = 0; j < K; ++j) totals[j] = sums[j].value();
    return totals;
}

// A sample of weight zero does not count, even if its value is infinite.
inline double weighed(double s, double x) { return s > 0 ? s * x : 0.0; }

// Error bounds of scores: `relative` times the sums of their terms' absolute values, `input` times the score and the target.
struct ScoreError {
    double relative, underflow, input;
    double of(double absolute, double z, double y) const { return relative * absolute + underflow + input * (std::fabs(z) + std::fabs(y)); }
};

template <class Loss>
constexpr bool smooth = !Loss::piecewise_linear && !std::is_same_v<Loss, Exponential>;

// A bound on phi(z') - phi(z) over |z' - z| <= e: from the slope and the smoothness, or from the ends, moved outwards since
// they are rounded; at most lipschitz e.
template <class Loss>
inline double rise(const Loss &loss, const Response &at, double z, double y, double e, double smoothness, double lipschitz) {
    const double most = lipschitz < infinity ? (1 + 1e-9) * lipschitz * e : infinity;
    if constexpr (smooth<Loss>) return std::min((1 + 1e-9) * std::fabs(at.a) * e + 0.5 * smoothness * e * e, most);
    else return std::min(std::max(loss.value(z - 1.25 * e, y), loss.value(z + 1.25 * e, y)) - at.phi, most);
}

// sum s phi(z) and sum s rise; error receives the error bounds of the scores.
template <class Loss>
std::array<double, 2> bound_values(const Loss &loss, const double *z, const double *absolute, const ScoreError &bound, const double *y, const double *s,
                                   double smoothness, double lipschitz, Index n, double *error) {
    return compensated_sums<2>(n, [=](Index i, Index k, double (*term)[block_size]) {
        const double e = bound.of(absolute[i], z[i], y[i]);
        Response at{0, 0, 0};
        if constexpr (Loss::piecewise_linear) at.phi = loss.value(z[i], y[i]);
        else at = respond(loss, z[i], y[i], 0, 0);
        error[i] = e;
        term[0][k] = weighed(s[i], at.phi);
        term[1][k] = weighed(s[i], rise(loss, at, z[i], y[i], e, smoothness, lipschitz));
    });
}

template <class Loss>
inline double conjugate_of(const Loss &loss, double a, double y) {
    return loss.conjugate(-a, y);
}

inline double conjugate_of(const Logistic &, double a, double y) {
    const double t = y * a;
    return t >= 0 && t <= 1 ? binary_entropy(t) : infinity;
}

// sum s g with g = -phi*(-a), and the sum of the absolute values of the rounded terms, s (|g| + |phi*(0)| + 2 |a| (unit + |y|)).
template <class Loss>
std::array<double, 2> bound_conjugates(const Loss &loss, const double *a, const double *at_zero, const double *y, const double *s, double unit, Index n) {
    return compensated_sums<2>(n, [=](Index i, Index k, double (*term)[block_size]) {
        const double g = -conjugate_of(loss, a[i], y[i]);
        term[0][k] = weighed(s[i], g);
        term[1][k] = weighed(s[i], std::fabs(g) + std::fabs(at_zero[i]) + 2 * std::fabs(a[i]) * (unit + std::fabs(y[i])));
    });
}

// sum s a z, the same of absolute values, and sum s |a| error.
inline std::array<double, 3> bound_products(const double *a, const double *z, const double *error, const double *s, Index n) {
    return compensated_sums<3>(n, [=](Index i, Index k, double (*term)[block_size]) {
        term[0][k] = weighed(s[i], a[i] * z[i]);
        term[1][k] = std::fabs(term[0][k]);
        term[2][k] = weighed(s[i], std::fabs(a[i]) * error[i]);
    });
}

inline double sum_of_squares(const double *x, Index n) {
    return compensated_sums<1>(n, [=](Index i, Index k, double (*term)[block_size]) { term[0][k] = x[i] * x[i]; })[0];
}

}  // namespace fenchel
