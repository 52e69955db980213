// Dual ascent over pairs of samples for piecewise linear losses with an unpenalised intercept: sum_i s_i a_i never changes.
//
// With u_i = s_i a_i the dual objective times W has the derivative kink - f(x_i) along u_i, where the kink of the loss depends on the
// side at the ends of a piece. A step moves u_i up and u_j down by the same amount: i is the sample with the largest derivative upwards,
// j the one that raises D most with it, by the second derivative k(x_i, x_i) + k(x_j, x_j) - 2 k(x_i, x_j) (Fan, Chen and Lin 2005).
#pragma once
#include "ascent/dual_ascent.hpp"

namespace fenchel {

// The kink where a multiplier's score is balanced as it moves up or down, and how far it can move; none beyond the domain.
struct Side {
    double kink, distance;
};

inline Side upwards(double kink, double distance) { return distance > 0 ? Side{kink, distance} : Side{-infinity, 0}; }
inline Side downwards(double kink, double distance) { return distance > 0 ? Side{kink, distance} : Side{infinity, 0}; }

inline Side up(const Hinge &, double a, double y) { return upwards(y, std::max(y, 0.0) - a); }
inline Side down(const Hinge &, double a, double y) { return downwards(y, a - std::min(y, 0.0)); }
inline Side up(const Pinball &loss, double a, double y) { return upwards(y, loss.tau - a); }
inline Side down(const Pinball &loss, double a, double y) { return downwards(y, a - (loss.tau - 1)); }
inline Side up(const EpsilonInsensitive &loss, double a, double y) { return a < 0 ? upwards(y + loss.epsilon, -a) : upwards(y - loss.epsilon, 1 - a); }
inline Side down(const EpsilonInsensitive &loss, double a, double y) { return a > 0 ? downwards(y - loss.epsilon, a) : downwards(y + loss.epsilon, a + 1); }

// The position of the largest value(k), k < n; -1 if there is none above -infinity. Blocks, so that maxima are vectorised.
template <class F>
Index argmax(Index n, F &&value) {
    constexpr Index width = 128;
    double best = -infinity;
    Index block = -1;
    for (Index first = 0; first < n; first += width) {
        const Index last = std::min(first + width, n);
        double largest = -infinity;
#pragma omp simd reduction(max : largest)
        for (Index k = first; k < last; ++k) largest = std::max(largest, value(k));
        if (largest > best) best = largest, block = first;
    }
    if (block < 0) return -1;
    for (Index k = block; k < std::min(block + width, n); ++k)
        if (value(k) == best) return k;
    return block;
}

template <class Loss>
class PairAscent {
  public:
    // K is n x n; f are the scores without the intercept; step = 1 / (lam W).
    PairAscent(const Loss &loss, const double *K, Index n, const double *y, const double *s, double step, double *alpha, double *f)
        : loss_(loss), K_(K), n_(n), y_(y), s_(s), step_(step), alpha_(alpha), f_(f), up_(n), down_(n), diagonal_(n) {
        for (Index i = 0; i < n; ++i) place(i), diagonal_[i] = K[i * n + i];
    }

    // At most so many steps, until the derivatives of all pairs are at most `enough`; returns the steps made.
    Index run(Index most, double enough) {
        for (Index count = 0; count < most; ++count)
            if (!advance(enough)) return count;
        return most;
    }

    // max up - min down: by how much the best pair violates the optimality conditions; their mean is the intercept.
    double largest() const {
        double out = -infinity;
        for (Index k = 0; k < n_; ++k) out = std::max(out, up_[k] - f_[k]);
        return out;
    }
    double smallest() const {
        double out = infinity;
        for (Index k = 0; k < n_; ++k) out = std::min(out, down_[k] - f_[k]);
        return out;
    }

  private:
    void place(Index i) {
        const bool counts = s_[i] > 0;
        up_[i] = counts ? up(loss_, alpha_[i], y_[i]).kink : -infinity;
        down_[i] = counts ? down(loss_, alpha_[i], y_[i]).kink : infinity;
    }

    bool advance(double enough) {
        const Index i = argmax(n_, [&](Index k) { return up_[k] - f_[k]; });
        if (i < 0) return false;
        const double top = up_[i] - f_[i], own = diagonal_[i];
        const double *row = K_ + i * n_;
        const double least = 1e-12 * (own + 1e-300);
        // the rise of D, times 2 step; -infinity where there is none
        const Index j = argmax(n_, [&](Index k) {
            const double slope = top - (down_[k] - f_[k]);
            const double curvature = std::max(own + diagonal_[k] - 2 * row[k], least);
            return slope > enough ? slope * slope / curvature : -infinity;
        });
        if (j < 0 || j == i) return false;
        const double slope = top - (down_[j] - f_[j]), curvature = std::max(own + diagonal_[j] - 2 * row[j], least);
        const double distance_i = s_[i] * up(loss_, alpha_[i], y_[i]).distance, distance_j = s_[j] * down(loss_, alpha_[j], y_[j]).distance;
        const double t = std::min({slope / (step_ * curvature), distance_i, distance_j});
        if (!(t > 0)) return false;
        move(i, t, t == distance_i), move(j, -t, t == distance_j);
        const double *other = K_ + j * n_, scaled = step_ * t;
#pragma omp simd
        for (Index k = 0; k < n_; ++k) f_[k] += scaled * (row[k] - other[k]);
        return true;
    }

    // To the end of its piece exactly where that is reached.
    void move(Index i, double t, bool to_end) {
        if (to_end) {
            const double distance = t > 0 ? up(loss_, alpha_[i], y_[i]).distance : -down(loss_, alpha_[i], y_[i]).distance;
            alpha_[i] = rounded(alpha_[i] + distance, y_[i], distance);
        } else {
            alpha_[i] += t / s_[i];
            if constexpr (std::is_same_v<Loss, Hinge>) alpha_[i] = clip(alpha_[i], std::min(y_[i], 0.0), std::max(y_[i], 0.0));
        }
        place(i);
    }
    // a + (end - a) may differ from the end by rounding.
    double rounded(double a, double y, double distance) const {
        if constexpr (std::is_same_v<Loss, Hinge>) return distance > 0 ? std::max(y, 0.0) : std::min(y, 0.0);
        else if constexpr (std::is_same_v<Loss, Pinball>) return distance > 0 ? loss_.tau : loss_.tau - 1;
        else return std::round(a);
    }

    const Loss &loss_;
    const double *K_;
    const Index n_;
    const double *y_, *s_;
    const double step_;
    double *alpha_, *f_;
    std::vector<double> up_, down_, diagonal_;
};

}  // namespace fenchel
