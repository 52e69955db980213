// Losses of k scores for a class y: the dual step of a block alpha = e_y - p, p in the probability simplex.
//
// The step maximises  g(p') + z.(p' - p) - q |p' - p|^2 / 2  over the simplex, g(p) = -phi*(p - e_y; y).
// The same formulas are derived in fenchel/problem/losses/multiclass.py; a law test asserts that the two agree.
#pragma once
#include <functional>
#include <vector>

#include "linalg/storage.hpp"
#include "losses/losses.hpp"

namespace fenchel {

// The root w > 0 of w + log w = y (Wright's omega): a start within a few per cent, then fourth-order steps (Fritsch, Shafer and
// Crowley 1973).
inline double omega(double y) {
    double w;
    if (y < -2) {
        const double x = std::exp(y);
        w = x * (1 - x * (1 - 1.5 * x));
        if (y < -12) return w;
    } else if (y < 1.5) {
        const double l = std::log1p(std::exp(y));
        w = l * (1 - std::log1p(l) / (2 + l));
    } else {
        const double l = std::log(y);
        w = y - l + l / y;
    }
    for (int k = 0; k < 2; ++k) {
        const double r = y - w - std::log(w), next = 1 + w;
        const double t = next * (next + 2 * r / 3);
        w *= 1 + r / next * (t - r / 2) / (t - r);
        if (std::fabs(r) < 1e-4 * next) break;  // the error is of order r^4
    }
    return w;
}

// Memory for a step, reused for the next sample.
struct Workspace {
    std::vector<double> p, sorted;
    double lead = -infinity;  // changes of score differences below this do not change the step's result
    explicit Workspace(Index k) : p(k), sorted(k) {}
};

// F(z) = max_p z.p + g(p) over the simplex, so that the loss is F(z) - z_y, and a sample's term of the gap F(z) - z.p - g(p).
struct Level {
    double maximum, own;  // F(z), and z.p + g(p)
};

struct Multinomial {  // g is the entropy -sum p log p
    static constexpr bool costly = true;
    Level level(const double *p, const double *z, Index, Index k) const {
        const double top = *std::max_element(z, z + k);
        double sum = 0, own = 0;
        for (Index j = 0; j < k; ++j) {
            sum += std::exp(z[j] - top);
            own += z[j] * p[j] - entropy(p[j]);
        }
        return {top + std::log(sum), own};
    }
    // log p'_j + q p'_j = c_j - nu with c = z + q p: p'_j = omega(c_j - nu + log q) / q. sum_j p'_j decreases in nu; safeguarded
    // Newton on its logarithm finds the root of sum_j p'_j = 1.
    void dual_step(double *p, const double *z, double q, Index, Index k, Workspace &workspace) const {
        q = positive(q);
        const double log_q = std::log(q);
        double *c = workspace.sorted.data();
        Index top = 0;
        for (Index j = 0; j < k; ++j) {
            c[j] = z[j] + q * p[j];
            if (p[j] > p[top]) top = j;
        }
        const double highest = *std::max_element(c, c + k);
        double low = highest - q, high = highest + std::log(static_cast<double>(k)) - q / static_cast<double>(k);
        double nu = clip(c[top] - std::log(p[top]) - q * p[top], low, high), sum = 1;
        for (int step = 0; step < 60; ++step) {
            double slope = 0;
            sum = 0;
            for (Index j = 0; j < k; ++j) {
                const double w = omega(c[j] - nu + log_q);
                p[j] = w / q;
                sum += p[j];
                slope += p[j] / (1 + w);
            }
            if (std::fabs(sum - 1) <= 1e-13) break;
            (sum > 1 ? low : high) = nu;
            double next = nu + std::log(sum) * sum / slope;
            if (!(next > low && next < high)) next = 0.5 * (low + high);
            if (next == nu) break;
            nu = next;
        }
        for (Index j = 0; j < k; ++j) p[j] /= sum;
    }
};

struct CrammerSinger {  // g is 1 - p_y, the sum of the other entries
    static constexpr bool costly = false;
    Level level(const double *p, const double *z, Index y, Index k) const {
        double maximum = z[y], own = z[y] * p[y];
        for (Index j = 0; j < k; ++j) {
            if (j == y) continue;
            maximum = std::max(maximum, 1 + z[j]);
            own += (1 + z[j]) * p[j];
        }
        return {maximum, own};
    }
    // q p' is the projection of t = q p + z + (1 - e_y) onto {x >= 0, sum x = q}: max(0, t - theta).
    void dual_step(double *p, const double *z, double q, Index y, Index k, Workspace &workspace) const {
        q = positive(q);
        for (Index j = 0; j < k; ++j) p[j] = q * p[j] + z[j] + (j == y ? 0.0 : 1.0);
        const double top = *std::max_element(p, p + k);
        double *t = workspace.sorted.data();
        for (Index j = 0; j < k; ++j) t[j] = p[j] -= top;
        std::sort(t, t + k, std::greater<>());
        workspace.lead = k > 1 ? (t[0] - t[1] - q) / 2 : infinity;
        double sum = 0, theta = -q;
        for (Index m = 0; m < k && t[m] > theta; ++m) {
            sum += t[m];
            theta = (sum - q) / static_cast<double>(m + 1);
        }
        sum = 0;
        for (Index j = 0; j < k; ++j) sum += p[j] = std::max(0.0, p[j] - theta) / q;
        for (Index j = 0; j < k; ++j) p[j] /= sum;
    }
};

}  // namespace fenchel
