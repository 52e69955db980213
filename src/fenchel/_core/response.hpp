// How the multipliers respond to the scores: what semismooth Newton steps and their line search need.
//
// For tau = 0 and a smooth loss: a(z) = -phi'(z), with h = -a'(z) = phi''(z). For tau > 0 and a loss of straight pieces:
// a(z) maximises -phi*(-a) - z a - tau (a - c)^2 / 2, so that -a(z) is the derivative of a smoothed loss; h = 1 / tau where a(z)
// lies strictly between the slopes of two pieces, 0 elsewhere.
#pragma once
#include "losses.hpp"
#include "storage.hpp"

namespace fenchel {

struct Response {
    double a, h;
};

template <class Loss>
Response respond(const Loss &loss, double z, double y, double c, double tau) {
    if constexpr (Loss::straight) {
        const double a = loss.dual_step(c, z, tau, y);
        return {a, loss.is_slope(a, y) ? 0.0 : 1 / tau};
    } else {
        return {-loss.derivative(z, y), loss.curvature(z, y)};
    }
}

struct Totals {
    double loss, gap;  // sum s_i phi(z_i), sum s_i (phi(z_i) + phi*(-a_i) + a_i z_i)
};

template <class Loss>
Totals respond_all(const Loss &loss, const double *z, const double *y, const double *s, const double *c, double tau, Index n, double *a, double *h) {
    Totals sums{0, 0};
    for (Index i = 0; i < n; ++i) {
        const Response r = respond(loss, z[i], y[i], c[i], tau);
        a[i] = r.a, h[i] = r.h;
        const double phi = loss.value(z[i], y[i]);
        sums.loss += s[i] * phi;
        if (Loss::straight && s[i] > 0) sums.gap += s[i] * (phi + loss.conjugate(-r.a, y[i]) + r.a * z[i]);
    }
    return sums;
}

// The derivative along z + t dz of the smoothed loss, sum -s_i a_i dz_i, and its own derivative, sum s_i h_i dz_i^2.
template <class Loss>
Response slope_along(const Loss &loss, const double *z, const double *dz, const double *y, const double *s, const double *c, double tau, double t, Index n) {
    Response sum{0, 0};
    for (Index i = 0; i < n; ++i) {
        const Response r = respond(loss, z[i] + t * dz[i], y[i], c[i], tau);
        sum.a -= s[i] * r.a * dz[i];
        sum.h += s[i] * r.h * dz[i] * dz[i];
    }
    return sum;
}

}  // namespace fenchel
