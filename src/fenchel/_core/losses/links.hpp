// Links: the weights as a function of u = v / mu, for mu-strongly convex penalties.
//
//   Linear     w = u                                      L2
//   Threshold  w = soft(u, l1 / mu)                       ElasticNet
//   Power      w = (p - 1) sign(u) |u|^(q-1) |u|_q^(2-q)  LpSquared, shrunk to p-norm `radius` if longer
//   Entropic   w = B sinh(u / B) / sum cosh(u / B)        SignedEntropy, with B = `radius`
//
// A link may have a state (Power: the q-norm of u; Entropic: the sum): `begin` computes it, `changed` and `settle` update it as entries of u change.
// `stretched(c)` is the link with w_c(c u) = c w(u).
#pragma once
#include <cmath>
#include <vector>

#include "linalg/products.hpp"
#include "losses/losses.hpp"

namespace fenchel {

struct Linear {
    static constexpr bool stateless = true;
    void begin(const double *, Index) {}
    double weight(double u) const { return u; }
    Linear stretched(double) const { return *this; }
};

struct Threshold {
    static constexpr bool stateless = true;
    double threshold;
    void begin(const double *, Index) {}
    double weight(double u) const { return soft(u, threshold); }
    Threshold stretched(double by) const { return {threshold * by}; }
};

struct Power {
    static constexpr bool stateless = false;
    double p, radius;
    double scale = 0, sum = 0, factor = 0;  // sum = |u / scale|_q^q
    double least = 0;                       // entries below this times scale do not change the sum, which is about 1 or more
    const double *u = nullptr;
    Index size = 0;

    double q() const { return p / (p - 1); }

    double term(double value) const {
        const double ratio = std::fabs(value) / scale;
        return ratio > least ? std::pow(ratio, q()) : 0.0;
    }
    // Powers of u / scale, scale = max |u_j|, neither overflow nor underflow.
    void begin(const double *values, Index n) {
        u = values, size = n, scale = 0, sum = 0;
        for (Index j = 0; j < n; ++j) scale = std::max(scale, std::fabs(u[j]));
        least = std::pow(1e-24, 1 / q());
        if (scale > 0)
            for (Index j = 0; j < n; ++j) sum += term(u[j]);
        refresh();
    }
    // w_j = factor sign(u_j) (|u_j| / scale)^(q-1), of p-norm (p - 1) |u|_q or radius.
    void refresh() {
        if (!(scale > 0 && sum > 0)) return void(factor = 0);
        const double length = scale * std::pow(sum, 1 / q());
        factor = std::min((p - 1) * length, radius) * std::pow(sum, -1 / p);
    }
    double weight(double value) const { return factor == 0 ? 0 : std::copysign(factor * std::pow(std::fabs(value) / scale, q() - 1), value); }
    void changed(double before, double after) {
        if (!(std::fabs(after) <= 2 * scale)) return void(scale = -1);  // out of range: recompute
        if (scale > 0) sum = std::max(0.0, sum + term(after) - term(before));
    }
    void settle() {
        if (scale < 0 || !(sum > 0.25)) begin(u, size);
        else refresh();
    }
    Power stretched(double by) const {
        Power other = *this;
        other.radius *= by;
        other.refresh();
        return other;
    }
};

struct Entropic {
    static constexpr bool stateless = false;
    double radius;
    double top = 0, sum = 0;  // top = max |u_j|, sum = sum_j 2 cosh(u_j / radius) exp(-top / radius)
    const double *u = nullptr;
    Index size = 0;

    // 2 cosh(value / radius) and 2 sinh(|value| / radius), over exp(top / radius).
    double term(double value) const { return std::exp((std::fabs(value) - top) / radius) + std::exp(-(std::fabs(value) + top) / radius); }
    double part(double value) const { return -std::exp((std::fabs(value) - top) / radius) * std::expm1(-2 * std::fabs(value) / radius); }
    void begin(const double *values, Index n) {
        u = values, size = n, top = 0, sum = 0;
        for (Index j = 0; j < n; ++j) top = std::max(top, std::fabs(u[j]));
        for (Index j = 0; j < n; ++j) sum += term(u[j]);
    }
    double weight(double value) const { return std::copysign(radius * part(value) / sum, value); }
    void changed(double before, double after) {
        if (!(std::fabs(after) <= top + 5 * radius)) return void(top = -1);  // later terms would lose digits: recompute
        if (top >= 0) sum = std::max(0.0, sum + term(after) - term(before));
    }
    // The largest of the terms is at least 1 for the largest |u_j|: a small sum has lost its digits.
    void settle() {
        if (top < 0 || !(sum > 0.25)) begin(u, size);
    }
    // Its sum is another one, of all entries.
    Entropic stretched(double by) const {
        Entropic other{radius * by};
        other.begin(u, size);
        return other;
    }
};

}  // namespace fenchel
