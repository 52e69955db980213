// Newton steps on few columns, many in one call: such a step takes less time than a call from Python.
//
// The steps are those of fenchel/steps/newton/newton.py, which derives them: P(w) = (1/W) sum_i s_i phi(z_i) + sum_j ridge_j w_j^2 / 2 with
// z = A w, where A has X's columns and perhaps one for the intercept, whose ridge is 0. A piecewise linear loss is smoothed around a centre
// c, which moves, with a decreasing tau. No proof rests on the numbers here but by the order of their sums: z and A' (s a) are
// computed anew at the end.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "losses/response.hpp"

namespace fenchel {

struct NewtonRequest {
    double tau, least_tau, tau_factor;  // of a piecewise linear loss
    double tol, atol;  // ends when the gap is at most tol |P| or atol,
    Index steps, patience;  // or after so many steps, or as many in which the gap has not fallen
    bool free_intercept, quadratic;  // the last column is not penalised; the curvature is constant
};

struct NewtonOutcome {
    double tau, primal, gap;
    Index made;
    bool stuck;
};

// Lower Cholesky factor in place, by columns; false if a pivot is not positive.
inline bool cholesky(std::vector<double> &H, Index d) {
    for (Index j = 0; j < d; ++j) {
        double *column = &H[j * d];
        if (!(column[j] > 0 && std::isfinite(column[j]))) return false;
        const double root = std::sqrt(column[j]);
        for (Index i = j; i < d; ++i) column[i] /= root;
        for (Index k = j + 1; k < d; ++k) {
            const double factor = column[k];
            double *other = &H[k * d];
#pragma omp simd
            for (Index i = k; i < d; ++i) other[i] -= factor * column[i];
        }
    }
    return true;
}

inline void solve_factored(const std::vector<double> &L, double *x, Index d) {
    for (Index j = 0; j < d; ++j) {
        x[j] /= L[j * d + j];
        for (Index i = j + 1; i < d; ++i) x[i] -= L[j * d + i] * x[j];
    }
    for (Index j = d - 1; j >= 0; --j) {
        for (Index i = j + 1; i < d; ++i) x[j] -= L[j * d + i] * x[i];
        x[j] /= L[j * d + j];
    }
}

template <class Loss>
class FewColumns {
  public:
    // A is n x d by rows. w, c, a (n multipliers) and v = A' (s a), z are written.
    FewColumns(const Loss &loss, const double *A, Index n, Index d, const double *y, const double *s, const double *ridge, const double *low, const double *high,
               const NewtonRequest &request, double *w, double *c, double *z, double *a, double *v)
        : loss_(loss), A_(A), n_(n), d_(d), y_(y), s_(s), ridge_(ridge), low_(low), high_(high), request_(request), w_(w), c_(c), z_(z), a_(a), v_(v), tau_(request.tau),
          h_(n), dz_(n), tangent_(n), weighted_(n), g_(d), q_(d), p_(d), other_(d), H_(d * d) {
        for (Index i = 0; i < n; ++i) W_ += s[i];
        for (Index j = 0; j + request.free_intercept < d; ++j) lam_ = ridge[j];
    }

    NewtonOutcome run() {
        scores(w_, z_);
        respond();
        double best = infinity;
        Index made = 0, idle = 0;
        bool stuck = false;
        while (made < request_.steps && !stuck) {
            step();
            ++made;
            const double gap = this->gap();
            if (!std::isfinite(primal_) || gap <= std::max(request_.tol * std::fabs(primal_), request_.atol)) break;
            ++idle;
            if (gap < 0.99 * best) best = gap, idle = 0;
            stuck = idle > request_.patience;
            if constexpr (Loss::piecewise_linear)
                if (is_solved()) move_centre();
        }
        const double gap = this->gap();
        if (tangent_gap_ < own_gap()) std::copy(tangent_.begin(), tangent_.end(), a_);
        scores(w_, z_);
        combine(a_, v_);
        return {tau_, primal_, gap, made, stuck};
    }

  private:
    const Loss &loss_;
    const double *A_;
    Index n_, d_;
    const double *y_, *s_, *ridge_, *low_, *high_;
    NewtonRequest request_;
    double *w_, *c_, *z_, *a_, *v_;
    double tau_, W_ = 0, lam_ = 0, primal_ = 0, gap_sum_ = 0, tangent_gap_ = infinity;
    std::vector<double> h_, dz_, tangent_, weighted_, g_, q_, p_, other_, H_;

    void scores(const double *w, double *z) const {
        for (Index i = 0; i < n_; ++i) {
            double sum = 0;
#pragma omp simd reduction(+ : sum)
            for (Index j = 0; j < d_; ++j) sum += A_[i * d_ + j] * w[j];
            z[i] = sum;
        }
    }

    void combine(const double *a, double *v) const {
        std::fill(v, v + d_, 0.0);
        for (Index i = 0; i < n_; ++i) {
            const double x = s_[i] * a[i];
            if (x == 0) continue;
#pragma omp simd
            for (Index j = 0; j < d_; ++j) v[j] += x * A_[i * d_ + j];
        }
    }

    // Multipliers, curvatures, P and its gradient ridge w - v.
    void respond() {
        const Totals sums = respond_all(loss_, z_, y_, s_, c_, tau_, n_, a_, h_.data());
        gap_sum_ = sums.gap, primal_ = sums.loss / W_;
        combine(a_, v_);
        for (Index j = 0; j < d_; ++j) {
            g_[j] = ridge_[j] * w_[j] - v_[j] / W_;
            primal_ += 0.5 * ridge_[j] * w_[j] * w_[j];
        }
    }

    double gradient_gap(const std::vector<double> &g) const {
        double sum = 0, intercept = 0;
        const Index penalised = d_ - request_.free_intercept;
        for (Index j = 0; j < penalised; ++j) sum += g[j] * g[j];
        if (request_.free_intercept) intercept = std::fabs(g[penalised]) * (1 + std::fabs(w_[penalised]));
        return intercept + (penalised > 0 ? sum / (2 * lam_) : 0.0);
    }
    double own_gap() const { return gap_sum_ / W_ + gradient_gap(g_); }
    double gap() const { return std::min(own_gap(), tangent_gap_); }

    // H = ridge + A' diag(s h / W) A, with a small ridge for the intercept, whose curvature may be almost zero.
    void factor() {
        double curvature = 0;
        for (double more : {0.0, 1e-15, 1e-13, 1e-11, 1e-9}) {
            std::fill(H_.begin(), H_.end(), 0.0);
            curvature = 0;
            for (Index i = 0; i < n_; ++i) {
                const double h = s_[i] * h_[i] / W_;
                if (h == 0) continue;
                const double *x = A_ + i * d_;
                curvature += h * x[d_ - 1] * x[d_ - 1];
                for (Index j = 0; j < d_; ++j) {
                    const double scaled = h * x[j];
                    double *column = &H_[j * d_];
#pragma omp simd
                    for (Index k = j; k < d_; ++k) column[k] += scaled * x[k];
                }
            }
            std::copy(ridge_, ridge_ + d_, other_.begin());
            if (request_.free_intercept)
                other_[d_ - 1] = request_.quadratic ? 1e-12 * curvature : 1e-3 * (curvature > 0 ? std::min(ridge_[0], curvature) : ridge_[0]);
            for (Index j = 0; j < d_; ++j) H_[j * d_ + j] += other_[j] + more * H_[j * d_ + j];
            if (cholesky(H_, d_)) return;
        }
        std::fill(H_.begin(), H_.end(), std::nan(""));
    }

    void step() {
        factor();
        std::copy(g_.begin(), g_.end(), q_.begin());
        solve_factored(H_, q_.data(), d_);
        for (Index j = 0; j < d_; ++j) p_[j] = -q_[j];
        scores(p_.data(), dz_.data());
        const double t = line_search();
        bool clipped = false;
        if constexpr (!Loss::piecewise_linear)
            if (!request_.quadratic) {
                Index count = 0;
                for (Index i = 0; i < n_; ++i) {
                    const double x = a_[i] - h_[i] * dz_[i], inside = std::min(std::max(x, low_[i]), high_[i]);
                    weighted_[i] = inside - x;
                    count += weighted_[i] != 0;
                    tangent_[i] = inside;
                }
                clipped = 2 * count > n_;
            }
        for (Index j = 0; j < d_; ++j) w_[j] += t * p_[j];
        scores(w_, z_);  // anew, so that it does not matter in how many calls steps are made
        respond();
        tangent_gap_ = infinity;
        if constexpr (!Loss::piecewise_linear)
            if (!request_.quadratic && !clipped) {
                // lam (w + t p) - v(a - h dz) = residual - (1 - t) ridge p, and what was clipped
                combine(weighted_.data(), q_.data());
                for (Index j = 0; j < d_; ++j) q_[j] = (ridge_[j] - other_[j]) * p_[j] - (1 - t) * ridge_[j] * p_[j] - q_[j] / W_;
                tangent_gap_ = gap_sum(loss_, z_, y_, s_, tangent_.data(), n_) / W_ + gradient_gap(q_);
            }
    }

    double line_search() const {
        double linear = 0, quadratic = 0, first = 0;
        for (Index j = 0; j < d_; ++j) {
            linear += ridge_[j] * w_[j] * p_[j];
            quadratic += ridge_[j] * p_[j] * p_[j];
            first += g_[j] * p_[j];
        }
        double low = 0, high = infinity, t = 1;
        for (int k = 0; k < 400; ++k) {
            auto [slope, second] = slope_along(loss_, z_, dz_.data(), y_, s_, c_, tau_, t, n_);
            slope = slope / W_ + linear + t * quadratic, second = second / W_ + quadratic;
            if (std::fabs(slope) <= 0.1 * std::fabs(first)) return t;
            (slope < 0 ? low : high) = t;
            const double newton = second > 0 ? t - slope / second : high;
            if (high == infinity) {
                t = std::min(std::max(newton, 1.5 * t), 4 * t);
                continue;
            }
            const double middle = low > 0 ? std::sqrt(low * high) : 0.1 * high;
            t = low < newton && newton < high && k % 3 != 0 ? newton : middle;
            if (!(low < t && t < high)) break;
        }
        return low > 0 ? low : t;
    }

    // Whether |gradient|^2 / (2 lam) is at most the gain of moving the centre.
    bool is_solved() const {
        double lost = 0, squares = 0;
        for (Index i = 0; i < n_; ++i) lost += s_[i] * (a_[i] - c_[i]) * (a_[i] - c_[i]);
        for (Index j = 0; j < d_; ++j) squares += g_[j] * g_[j];
        const double gap = squares / (2 * lam_);
        return gap <= 0.5 * tau_ * lost / W_ || gap <= 1e-15 * std::fabs(primal_);
    }

    void move_centre() {
        std::copy(a_, a_ + n_, c_);
        tau_ = std::max(request_.tau_factor * tau_, std::min(tau_, request_.least_tau));
        respond();
    }
};

}  // namespace fenchel
