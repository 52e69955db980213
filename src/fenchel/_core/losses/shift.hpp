// The best shift of all scores, t with sum_i s_i f_i phi'(z_i + t f_i) = 0: problem/intercept.py describes the search, and has it for other
// losses.
#pragma once
#include <algorithm>
#include <cmath>

#include "losses/response.hpp"

namespace fenchel {

struct ShiftLimits {
    double unit, smoothness;  // the loss's
    double zero, farthest;  // a slope is zero up to rounding at this part of its terms; the minimum at infinity beyond this multiple of the scores
};

struct Slope {
    double total, size;  // the slope, and the sum of the absolute values of its terms
};

template <class Loss>
class BestShift {
  public:
    // f may be null, for ones.
    BestShift(const Loss &loss, const double *z, const double *y, const double *s, const double *f, Index n, const ShiftLimits &limits)
        : loss_(loss), z_(z), y_(y), s_(s), f_(f), n_(n), limits_(limits) {}

    double run() const {
        const Slope first = at(0);
        double width = 0, largest = 0, target = 0, squares = 0;
        for (Index i = 0; i < n_; ++i) {
            width = std::max(width, std::fabs(direction(i)));
            largest = std::max(largest, std::fabs(z_[i]));
            target = std::max(target, std::fabs(y_[i]));
            squares += s_[i] * direction(i) * direction(i);
        }
        if (is_zero(first) || !std::isfinite(first.total) || width < 1e-290) return 0;
        const double scale = (limits_.unit + largest + target) / width, curvature = limits_.smoothness * squares;
        const double exact = -first.total / curvature;
        if constexpr (quadratic)
            if (std::isfinite(exact)) return exact;
        const double step = std::max(std::isfinite(curvature) ? std::fabs(exact) : 0.0, 1e-6 * scale);
        double a = 0, fa = first.total, b = first.total > 0 ? -step : step;
        while (true) {
            const Slope found = at(b);
            const double fb = found.total;
            if (!std::isfinite(fb)) return a;
            if (is_zero(found) || std::fabs(b) > limits_.farthest * scale) return b;
            if (fb * fa < 0) return root(a, fa, b, fb);
            const double ahead = fb != fa ? std::fabs(fb * (b - a) / (fb - fa)) : infinity;
            const double next = b + std::copysign(std::min(1.1 * ahead, 3 * std::fabs(b)), b);
            a = b, fa = fb, b = next;
        }
    }

  private:
    static constexpr bool quadratic = std::is_same_v<Loss, Squared>;
    const Loss &loss_;
    const double *z_, *y_, *s_, *f_;
    Index n_;
    ShiftLimits limits_;

    double direction(Index i) const { return f_ ? f_[i] : 1.0; }
    bool is_zero(const Slope &slope) const { return std::fabs(slope.total) <= limits_.zero * slope.size; }

    Slope at(double t) const {
        double total = 0, size = 0;
#pragma omp simd reduction(+ : total, size)
        for (Index i = 0; i < n_; ++i) {
            const double f = direction(i), factor = s_[i] * f;
            const double term = factor != 0 ? -factor * multiplier(loss_, z_[i] + t * f, y_[i]) : 0.0;
            total += term;
            size += std::fabs(term);
        }
        return {std::isnan(total) ? total : clip(total, -1e300, 1e300), size};
    }

    // The root of an increasing function between a and b: Illinois method, every fourth step a bisection.
    double root(double a, double fa, double b, double fb) const {
        for (int k = 0; k < 200; ++k) {
            double t = k % 4 != 3 ? b - fb * (b - a) / (fb - fa) : 0.5 * (a + b);
            if (!(std::min(a, b) < t && t < std::max(a, b))) t = 0.5 * (a + b);
            const Slope found = at(t);
            if (is_zero(found) || t == a || t == b) return t;
            if (found.total * fb < 0) a = b, fa = fb;
            else fa *= 0.5;
            b = t, fb = found.total;
        }
        return b;
    }
};

}  // namespace fenchel
