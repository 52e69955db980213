// Multipliers as functions of the scores, for semismooth Newton steps and their line search.
//
// For tau = 0 and a smooth loss: a(z) = -phi'(z), with h = -a'(z) = phi''(z). For tau > 0 and a piecewise linear loss:
// a(z) maximises -phi*(-a) - z a - tau (a - c)^2 / 2, so that -a(z) is the derivative of a smoothed loss; h = 1 / tau if a(z) lies
// strictly between the slopes of two pieces, else 0.
#pragma once
#include "linalg/storage.hpp"
#include "losses/exponential.hpp"
#include "losses/losses.hpp"

#include <cmath>
#include <utility>

namespace fenchel {

struct Response {
    double a, h, phi;  // the multiplier, minus its derivative, and the loss
};

template <class Loss>
inline Response respond(const Loss &loss, double z, double y, double c, double tau) {
    if constexpr (Loss::piecewise_linear) {
        const double a = loss.dual_step(c, z, tau, y);
        return {a, loss.is_slope(a, y) ? 0.0 : 1 / tau, loss.value(z, y)};
    } else {
        return {-loss.derivative(z, y), loss.curvature(z, y), loss.value(z, y)};
    }
}

// The same with a single exponential.
inline Response respond(const Logistic &, double z, double y, double, double) {
    const double m = y * z, e = exp_nonpositive(-std::fabs(m)), q = 1 / (1 + e);
    return {y * q * (m > 0 ? e : 1.0), e * q * q, log1p_of_fraction(e) + 0.5 * (std::fabs(m) - m)};
}

// -phi'(z)
template <class Loss>
inline double multiplier(const Loss &loss, double z, double y) {
    return -loss.derivative(z, y);
}
inline double multiplier(const Logistic &loss, double z, double y) { return respond(loss, z, y, 0, 0).a; }

// phi(z) + phi*(-a) + a z >= 0, the gap term of a sample; infinite for multipliers outside the domain.
template <class Loss>
inline double fenchel_young(const Loss &loss, double z, double y, double a) {
    return loss.value(z, y) + loss.conjugate(-a, y) + a * z;
}

// t log t + (1 - t) log(1 - t) for 0 <= t <= 1, to a few units in the last place, also for tiny t or 1 - t.
inline double binary_entropy(double t) {
    constexpr double tiny = std::numeric_limits<double>::min();
    const double small = std::min(t, 1 - t), rest = 1 - small;
    return small * log_positive(std::max(small, tiny)) + rest * log1p_of_fraction(-small);
}

inline double fenchel_young(const Logistic &, double z, double y, double a) {
    const double m = y * z, t = y * a, e = exp_nonpositive(-std::fabs(m));
    const double gap = log1p_of_fraction(e) + 0.5 * (std::fabs(m) - m) + binary_entropy(t) + t * m;
    return t >= 0 && t <= 1 ? gap : infinity;
}

template <class Loss>
double gap_sum(const Loss &loss, const double *z, const double *y, const double *s, const double *a, Index n) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (Index i = 0; i < n; ++i) {
        const double term = fenchel_young(loss, z[i], y[i], a[i]);
        sum += s[i] > 0 ? s[i] * term : 0.0;
    }
    return sum;
}

struct Totals {
    double loss, gap;  // sum s_i phi(z_i), sum s_i (phi(z_i) + phi*(-a_i) + a_i z_i)
};

template <class Loss>
Totals respond_all(const Loss &loss, const double *z, const double *y, const double *s, const double *c, double tau, Index n, double *a, double *h) {
    double total = 0, gap = 0;
#pragma omp simd reduction(+ : total, gap)
    for (Index i = 0; i < n; ++i) {
        const Response r = respond(loss, z[i], y[i], c[i], tau);
        a[i] = r.a, h[i] = r.h;
        total += s[i] * r.phi;
        if constexpr (Loss::piecewise_linear) gap += s[i] > 0 ? s[i] * (r.phi + loss.conjugate(-r.a, y[i]) + r.a * z[i]) : 0.0;
    }
    return {total, gap};
}

// The first and second derivative along z + t dz of the smoothed loss, sum -s_i a_i dz_i and sum s_i h_i dz_i^2.
template <class Loss>
std::pair<double, double> slope_along(const Loss &loss, const double *z, const double *dz, const double *y, const double *s, const double *c, double tau,
                                      double t, Index n) {
    double slope = 0, curvature = 0;
#pragma omp simd reduction(+ : slope, curvature)
    for (Index i = 0; i < n; ++i) {
        const Response r = respond(loss, z[i] + t * dz[i], y[i], c[i], tau);
        slope -= s[i] * r.a * dz[i];
        curvature += s[i] * r.h * dz[i] * dz[i];
    }
    return {slope, curvature};
}

}  // namespace fenchel
