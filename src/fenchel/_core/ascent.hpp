// Dual coordinate ascent (Shalev-Shwartz and Zhang 2013) for penalties whose dual link is a soft threshold.
//
// With R(w) = l1 |w|_1 + mu/2 |w|_2^2 the link is w_j = soft(u_j, l1 / mu) for u = v / mu; l1 = 0 is the L2 penalty.
// A quadratic on the intercept, rho/2 (b - b0)^2, makes b = b0 + sum_i s_i a_i / (rho W) one more coordinate:
// inverse_rho = 0 switches it off, b0 = 0 is a penalised intercept, and a loop that moves b0 is the proximal-point
// method for an unpenalised one.
#pragma once
#include "losses.hpp"
#include "products.hpp"

namespace fenchel {

struct Ascent {
    double mu, threshold;    // threshold = l1 / mu
    double inverse_rho, W;   // W = sum of the weights
    double b;                // in and out
};

template <bool Soft, class Line>
double score(const Line &x, const double *u, double threshold) {
    if constexpr (!Soft) return dot(x, u);
    double sum = 0;
    for (Index k = 0; k < x.size; ++k) sum += static_cast<double>(x.value[k]) * soft(u[x.index(k)], threshold);
    return sum;
}

// One step for each sample in `order`. Returns the new intercept.
template <bool Soft, class Loss, class Matrix>
double ascend(const Loss &loss, const Matrix &rows, const double *y, const double *s, const double *squared_norm,
              const Index *order, Index steps, double *alpha, double *u, Ascent p) {
    constexpr Index ahead = 4;
    for (Index k = 0; k < steps; ++k) {
        if (k + ahead < steps) rows.prefetch(order[k + ahead]);
        const Index i = order[k];
        if (s[i] == 0) continue;
        const auto x = rows.line(i);
        const double share = s[i] / p.W;
        const double z = score<Soft>(x, u, p.threshold) + p.b;
        const double q = share * (squared_norm[i] / p.mu + p.inverse_rho);
        const double next = loss.dual_step(alpha[i], z, q, y[i]);
        const double change = next - alpha[i];
        if (change == 0) continue;
        alpha[i] = next;
        add(x, share * change / p.mu, u);
        p.b += share * change * p.inverse_rho;
    }
    return p.b;
}

}  // namespace fenchel
