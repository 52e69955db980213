// The minimum of a quadratic model with a dense Hessian, plus a penalty on groups of weights.
//
// slope.(u' - u) + (u' - u)'H(u' - u)/2 + sum_g threshold_g |u'_g|: coordinate descent finds which groups are zero, and Newton steps
// on the others, the face, move them all at once. `slope` is kept equal to the model's gradient at u.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "linalg/lapack.hpp"
#include "sparse/column_descent.hpp"

namespace fenchel {

class Quadratic {
  public:
    Quadratic(const double *H, Index size, Groups groups, const double *threshold, double *u, double *slope)
        : H_(H), size_(size), groups_(groups), threshold_(threshold), u_(u), slope_(slope), curvature_(groups.count) {
        for (Index g = 0; g < groups.count; ++g) curvature_[g] = largest_curvature(g);
    }

    // Coordinate descent and Newton steps in turns, until a pass changes the model by no more than `enough`.
    void minimise(Posv solve, double enough) {
        double work = 0;
        for (Index face = 0; face < most_faces && work < most_work; ++face) {
            // a pass that changes the model by nothing may still leave a slope: its change is the slope's square
            if (descend(passes, enough) == 1 && face > 0) return;
            find_face();
            if (members_.empty()) return;
            bool moved = false;
            for (Index step = 0; step < most_steps; ++step) {
                const double length = newton(solve), k = static_cast<double>(members_.size());
                work += k * k * k;
                moved |= length > 0;
                if (single_ || length < 0.1) break;  // with single weights one step is the minimum of its face
            }
            if (!moved) {
                descend(10 * passes, enough);
                return;
            }
        }
    }

  private:
    // `python -m benchmarks.race --sparse`, paths of a9a, leukemia and imdb.
    static constexpr Index passes = 5;         // of coordinate descent before each face
    static constexpr Index most_faces = 60;    // the model counts as minimised after so many,
    static constexpr Index most_steps = 8;     // each with so many Newton steps,
    static constexpr double most_work = 2e10;  // or after so many multiplications in them

    // An upper bound: the trace, or the largest sum of a row.
    double largest_curvature(Index g) const {
        double trace = 0, largest = 0;
        for (Index i = groups_.first[g]; i < groups_.first[g + 1]; ++i) {
            const double *row = H_ + groups_.column[i] * size_;
            double sum = 0;
            for (Index j = groups_.first[g]; j < groups_.first[g + 1]; ++j) sum += std::abs(row[groups_.column[j]]);
            trace += row[groups_.column[i]];
            largest = std::max(largest, sum);
        }
        return std::min(trace, largest);
    }

    // u_j += step, and the slope with it.
    void move(Index j, double step) {
        u_[j] += step;
        const double *row = H_ + j * size_;
#pragma omp simd
        for (Index i = 0; i < size_; ++i) slope_[i] += step * row[i];
    }

    // Passes over all groups until no step changes the model by more than `enough`; returns the passes made.
    Index descend(Index most_passes, double enough) {
        const auto slope = [&](Index j) { return slope_[j]; };
        const auto step = [&](Index j, double length) { move(j, length); };
        for (Index pass = 1; pass <= most_passes; ++pass) {
            double most = 0;
            for (Index g = 0; g < groups_.count; ++g) most = std::max(most, group_step(groups_, g, curvature_[g], threshold_[g], u_, next_, slope, step));
            if (most <= enough) return pass;
        }
        return most_passes + 1;
    }

    // The groups that are not zero, or have no penalty.
    void find_face() {
        members_.clear();
        start_.assign(1, 0);
        alive_.clear();
        single_ = true;
        for (Index g = 0; g < groups_.count; ++g) {
            if (threshold_[g] > 0 && !(groups_.norm(g, u_) > 0)) continue;
            alive_.push_back(g);
            members_.insert(members_.end(), groups_.column + groups_.first[g], groups_.column + groups_.first[g + 1]);
            start_.push_back(Index(members_.size()));
            single_ &= groups_.first[g + 1] - groups_.first[g] == 1;
        }
    }

    // A Newton step on the face; returns the fraction of it that was taken. Where columns are dependent the diagonal is raised until the
    // Hessian can be factored.
    double newton(Posv solve) {
        for (double ridge = 1e-14; ridge < 1e-5; ridge *= 1e4)
            if (solve_face(solve, ridge)) return line_search();
        return 0;
    }

    bool solve_face(Posv solve, double ridge) {
        const Index k = Index(members_.size());
        old_.resize(k);
        step_.resize(k);
        hessian_.resize(k * k);
        for (Index i = 0; i < k; ++i) {
            old_[i] = u_[members_[i]];
            step_[i] = -slope_[members_[i]];
            const double *row = H_ + members_[i] * size_;
            for (Index j = 0; j < k; ++j) hessian_[i * k + j] = row[members_[j]];
        }
        for (size_t g = 0; g < alive_.size(); ++g) add_penalty(g);
        for (Index i = 0; i < k; ++i) hessian_[i * k + i] *= 1 + ridge;
        char lower = 'L';
        int n = int(k), one = 1, info = 0;
        solve.call(&lower, &n, &one, hessian_.data(), &n, step_.data(), &n, &info);
        return info == 0 && std::all_of(step_.begin(), step_.end(), [](double x) { return std::isfinite(x); });
    }

    // |x_g| of a group of the face.
    double norm(size_t g, const std::vector<double> &x) const {
        double sum = 0;
        for (Index i = start_[g]; i < start_[g + 1]; ++i) sum += x[i] * x[i];
        return std::sqrt(sum);
    }

    // Adds the penalty's gradient and Hessian, threshold (I / |w| - w w' / |w|^3), of a group of the face.
    void add_penalty(size_t g) {
        const Index from = start_[g], to = start_[g + 1], k = Index(members_.size());
        const double length = norm(g, old_), pull = threshold_[alive_[g]] / length;
        if (!(pull > 0) || !(length > 0)) return;
        for (Index i = from; i < to; ++i) {
            step_[i] -= pull * old_[i];
            if (to - from == 1) continue;
            for (Index j = from; j < to; ++j) hessian_[i * k + j] += pull * ((i == j) - old_[i] / length * (old_[j] / length));
        }
    }

    // Sets the target at a fraction of the step, with single weights that would change their sign at zero.
    void set_target(double length) {
        target_.resize(members_.size());
        for (size_t g = 0; g < alive_.size(); ++g)
            for (Index i = start_[g]; i < start_[g + 1]; ++i) {
                target_[i] = old_[i] + length * step_[i];
                if (stops_at_zero(g) && target_[i] / old_[i] <= 1e-12) target_[i] = 0;
            }
    }
    bool stops_at_zero(size_t g) const { return start_[g + 1] - start_[g] == 1 && threshold_[alive_[g]] > 0; }

    // The full step; or up to the first sign change of a single weight; or half of that, ...
    double line_search() {
        double first = 1, slack = 0;
        for (size_t g = 0; g < alive_.size(); ++g) {
            const Index i = start_[g];
            if (stops_at_zero(g) && old_[i] * (old_[i] + step_[i]) < 0) first = std::min(first, -old_[i] / step_[i]);
            slack += 1e-14 * threshold_[alive_[g]] * norm(g, old_);
        }
        for (double length = 1; length > 1e-4 * first; length = length > first ? first : 0.5 * length) {
            set_target(length);
            // with single weights the model is quadratic up to there, and falls
            if (!(single_ && length <= first) && !(change() <= slack)) continue;
            for (size_t i = 0; i < members_.size(); ++i) {
                if (target_[i] != old_[i]) move(members_[i], target_[i] - old_[i]);
                u_[members_[i]] = target_[i];
            }
            return length;
        }
        return 0;
    }

    // The model's value at the target minus that at u.
    double change() const {
        const Index k = Index(members_.size());
        double sum = 0;
        for (Index i = 0; i < k; ++i) {
            const double step = target_[i] - old_[i];
            if (step == 0) continue;
            const double *row = H_ + members_[i] * size_;
            double curvature = 0;
            for (Index j = 0; j < k; ++j) curvature += row[members_[j]] * (target_[j] - old_[j]);
            sum += step * (slope_[members_[i]] + 0.5 * curvature);
        }
        for (size_t g = 0; g < alive_.size(); ++g) sum += threshold_[alive_[g]] * (norm(g, target_) - norm(g, old_));
        return sum;
    }

    const double *H_;
    Index size_;
    Groups groups_;
    const double *threshold_;
    double *u_, *slope_;
    std::vector<double> curvature_, next_, old_, step_, target_, hessian_;
    std::vector<Index> members_, start_, alive_;
    bool single_ = true;
};

}  // namespace fenchel
