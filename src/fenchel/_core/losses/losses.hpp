// One struct per loss: value, derivative, conjugate and the dual coordinate step, as scalar functions.
//
// The dual step returns the a' that maximises  -phi*(-a'; y) - z (a' - a) - q (a' - a)^2 / 2.
// The same formulas are derived in fenchel/problem/losses; a law test asserts that the two agree.
// For a piecewise linear loss is_slope tests whether a multiplier is minus the slope of a piece; the others have a second derivative
// (one-sided at jumps).
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>

namespace fenchel {

constexpr double infinity = std::numeric_limits<double>::infinity();

inline double clip(double x, double low, double high) { return std::min(std::max(x, low), high); }
inline double soft(double x, double t) { return x > t ? x - t : (x < -t ? x + t : 0.0); }
inline double entropy(double t) { return t > 0 ? t * std::log(t) : 0.0; }
// A zero row has q = 0; the limit of every step below is the step with the smallest positive q.
inline double positive(double q) { return std::max(q, std::numeric_limits<double>::min()); }
// a + numerator / q, and a if the numerator is 0, also for q = 0.
inline double ratio_step(double a, double numerator, double q) { return numerator == 0 ? a : a + numerator / positive(q); }

struct Hinge {
    double value(double z, double y) const { return std::max(0.0, 1 - y * z); }
    double derivative(double z, double y) const { return y * z < 1 ? -y : 0.0; }
    double conjugate(double u, double y) const { return -1 <= u * y && u * y <= 0 ? u * y : infinity; }
    double dual_step(double a, double z, double q, double y) const { return y * clip(ratio_step(a * y, 1 - y * z, q), 0, 1); }
    static constexpr bool piecewise_linear = true;
    bool is_slope(double a, double y) const { return a == 0 || a == y; }
};

struct SmoothedHinge {
    double gamma;
    double value(double z, double y) const {
        const double slack = 1 - y * z;
        return slack <= 0 ? 0 : (slack >= gamma ? slack - gamma / 2 : slack * slack / (2 * gamma));
    }
    double derivative(double z, double y) const { return -y * clip((1 - y * z) / gamma, 0, 1); }
    double conjugate(double u, double y) const { return -1 <= u * y && u * y <= 0 ? u * y + gamma * u * u / 2 : infinity; }
    double dual_step(double a, double z, double q, double y) const { return y * clip((1 - y * z + q * a * y) / (gamma + q), 0, 1); }
    static constexpr bool piecewise_linear = false;
    double curvature(double z, double y) const { return y * z < 1 && y * z > 1 - gamma ? 1 / gamma : 0.0; }
};

struct SquaredHinge {
    double value(double z, double y) const {
        const double slack = std::max(0.0, 1 - y * z);
        return slack * slack;
    }
    double derivative(double z, double y) const { return -2 * y * std::max(0.0, 1 - y * z); }
    double conjugate(double u, double y) const { return u * y <= 0 ? u * y + u * u / 4 : infinity; }
    double dual_step(double a, double z, double q, double y) const { return y * std::max(0.0, (1 - y * z + q * a * y) / (0.5 + q)); }
    static constexpr bool piecewise_linear = false;
    double curvature(double z, double y) const { return y * z < 1 ? 2.0 : 0.0; }
};

struct Logistic {
    double value(double z, double y) const {
        const double m = y * z;
        return m > 0 ? std::log1p(std::exp(-m)) : std::log1p(std::exp(m)) - m;
    }
    static double sigmoid(double x) {  // 1 / (1 + exp(-x)), accurate in both tails
        if (x >= 0) return 1 / (1 + std::exp(-x));
        const double e = std::exp(x);
        return e / (1 + e);
    }
    double derivative(double z, double y) const { return -y * sigmoid(-y * z); }
    double conjugate(double u, double y) const {
        const double t = -u * y;
        return 0 <= t && t <= 1 ? entropy(t) + entropy(1 - t) : infinity;
    }
    // With t' = sigmoid(-s): g(s) = s - m + q t - q sigmoid(-s) = 0. Convex left of 0, concave right of it: Newton restricted to
    // the root's side of 0 converges from every start.
    double dual_step(double a, double z, double q, double y) const {
        const double base = y * z - q * a * y;
        const bool right = base + 0.5 * q > 0;
        const double low = right ? std::max(base, 0.0) : base, high = right ? base + q : std::min(base + q, 0.0);
        double s = clip(y * z, low, high);
        for (int k = 0; k < 60; ++k) {
            const double t = sigmoid(-s);
            const double next = clip(s - (s - base - q * t) / (1 + q * t * (1 - t)), low, high);
            const bool done = std::fabs(next - s) <= 4e-16 * (1 + std::fabs(s));
            s = next;
            if (done) break;
        }
        return y * sigmoid(-s);
    }
    static constexpr bool piecewise_linear = false;
    double curvature(double z, double y) const { return sigmoid(y * z) * sigmoid(-y * z); }
};

struct Exponential {
    double value(double z, double y) const { return std::exp(-y * z); }
    double derivative(double z, double y) const { return -y * std::exp(-y * z); }
    double conjugate(double u, double y) const {
        const double t = -u * y;
        return t >= 0 ? entropy(t) - t : infinity;
    }
    // With t' = exp(-s), p = s - m + q t > 0 solves p + log p = log q - (m - q t): concave, so Newton from the left converges.
    double dual_step(double a, double z, double q, double y) const {
        q = positive(q);
        const double base = y * z - q * a * y, target = std::log(q) - base;
        double p = target > 1 ? target - std::log(target) : std::exp(std::min(target, 0.0));
        for (int k = 0; k < 60; ++k) {
            const double next = p * (1 + target - std::log(p)) / (1 + p);
            if (!(next > 0) || std::fabs(next - p) <= 1e-15 * p) break;
            p = next;
        }
        return y * p / q;
    }
    static constexpr bool piecewise_linear = false;
    double curvature(double z, double y) const { return std::exp(-y * z); }
};

struct Squared {
    double value(double z, double y) const { return (z - y) * (z - y) / 2; }
    double derivative(double z, double y) const { return z - y; }
    double conjugate(double u, double y) const { return u * y + u * u / 2; }
    double dual_step(double a, double z, double q, double y) const { return (y - z + q * a) / (1 + q); }
    static constexpr bool piecewise_linear = false;
    double curvature(double, double) const { return 1.0; }
};

struct Pinball {
    double tau;
    double value(double z, double y) const { return y > z ? tau * (y - z) : (1 - tau) * (z - y); }
    double derivative(double z, double y) const { return z < y ? -tau : (z > y ? 1 - tau : 0.0); }
    double conjugate(double u, double y) const { return -tau <= u && u <= 1 - tau ? u * y : infinity; }
    double dual_step(double a, double z, double q, double y) const { return clip(ratio_step(a, y - z, q), tau - 1, tau); }
    static constexpr bool piecewise_linear = true;
    bool is_slope(double a, double) const { return a == tau || a == tau - 1; }
};

struct EpsilonInsensitive {  // epsilon = 0: the absolute loss
    double epsilon;
    double value(double z, double y) const { return std::max(0.0, std::fabs(z - y) - epsilon); }
    double derivative(double z, double y) const { return z > y + epsilon ? 1.0 : (z < y - epsilon ? -1.0 : 0.0); }
    double conjugate(double u, double y) const { return std::fabs(u) <= 1 ? u * y + epsilon * std::fabs(u) : infinity; }
    double dual_step(double a, double z, double q, double y) const {
        q = positive(q);
        return clip(soft(a * q + (y - z), epsilon) / q, -1, 1);
    }
    static constexpr bool piecewise_linear = true;
    bool is_slope(double a, double) const { return std::fabs(a) == 1 || (a == 0 && epsilon > 0); }
};

struct SquaredEpsilonInsensitive {
    double epsilon;
    double excess(double z, double y) const { return soft(z - y, epsilon); }
    double value(double z, double y) const { return excess(z, y) * excess(z, y); }
    double derivative(double z, double y) const { return 2 * excess(z, y); }
    double conjugate(double u, double y) const { return u * y + epsilon * std::fabs(u) + u * u / 4; }
    double dual_step(double a, double z, double q, double y) const { return soft(q * a + y - z, epsilon) / (0.5 + q); }
    static constexpr bool piecewise_linear = false;
    double curvature(double z, double y) const { return excess(z, y) != 0 ? 2.0 : 0.0; }
};

struct Huber {
    double delta;
    double value(double z, double y) const {
        const double r = std::fabs(z - y);
        return r <= delta ? r * r / 2 : delta * r - delta * delta / 2;
    }
    double derivative(double z, double y) const { return clip(z - y, -delta, delta); }
    double conjugate(double u, double y) const { return std::fabs(u) <= delta ? u * y + u * u / 2 : infinity; }
    double dual_step(double a, double z, double q, double y) const { return clip((y - z + q * a) / (1 + q), -delta, delta); }
    static constexpr bool piecewise_linear = false;
    double curvature(double z, double y) const { return std::fabs(z - y) < delta ? 1.0 : 0.0; }
};

}  // namespace fenchel
