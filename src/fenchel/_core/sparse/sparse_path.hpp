// Optima along a grid of lam for few dense samples: a smooth loss, and threshold |w|_1 + ridge/2 |w|_2^2.
//
// Newton steps on a working set of columns (quadratic.hpp), then |v_j| of all columns that may exceed a cut (int16_screen.hpp), where
// v = X'(p a) with multipliers a = -phi'(z); until the duality gap of the whole problem is small enough.
#pragma once
#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <vector>

#include "sparse/column_cache.hpp"
#include "sparse/int16_screen.hpp"
#include "sparse/quadratic.hpp"

namespace fenchel {

// None of these numbers, nor those below, matters to the validity of a bound: the cut that was used is reported with every model.
struct SparsePathTuning {
    Index most_columns = 3000;  // of the working set; beyond, the path gives up
    double least_cut = 0.5;     // the cut lies between these two fractions of the threshold, ...
    double most_cut = 0.95;     // ... at the strong rule's 2 next - threshold if that is between them
};

// A smooth loss on the samples of positive weight: its mean at scores z, with multipliers a and second derivatives h; and the mean of
// -phi*(-theta a).
struct SmoothLoss {
    std::function<double(const double *z, double *a, double *h)> respond;
    std::function<double(const double *a, double theta)> dual;
    double smoothness;
};

// The penalty, the threshold that comes next, the gap asked for, and the time limit.
struct Goal {
    double threshold, ridge, next, tol, atol;
    std::chrono::steady_clock::time_point end;
    double gap(double primal) const { return std::max(tol * primal, atol); }
};

// A column whose |v_j| exceeds the cut.
struct Near {
    Index column;
    double size;
};

// Models, one after the other.
struct PathModels {
    std::vector<Index> starts{0}, columns;  // where each one's weights begin, and their columns
    std::vector<double> weights;
    std::vector<double> cut;            // all columns that are not listed have |v_j| <= cut, up to the rounding of a product in float64,
    std::vector<double> near;           // all |v_j| above the cut (SparsePath::list_near),
    std::vector<Index> near_starts{0};  // and where those of each model begin
    std::vector<double> b, loss, multipliers;
    std::vector<Index> steps;  // of Newton
};

class SparsePath {
  public:
    // `rows` are the samples of positive weight among those of the screen, p their weights, which add up to 1, and b the best intercept for
    // w = 0, if there is one. Columns may differ from those of the screen by constants, each at most `offset` S_j.
    SparsePath(const SparsePathTuning &tuning, const Int16Screen &screen, double offset, ColumnCache columns, std::vector<Index> rows, std::vector<double> p,
               SmoothLoss loss, bool intercept, double b, Posv solve)
        : tuning_(tuning), screen_(&screen), offset_(offset), columns_(std::move(columns)), rows_(std::move(rows)), n_(Index(rows_.size())), size_(padded(n_)),
          p_(std::move(p)), loss_(std::move(loss)), intercept_(intercept), b_(b), solve_(solve), product_(size_, 0.0), z_(n_, b), a_(n_), h_(n_),
          pa_(size_, 0.0), c_(size_, 0.0), q_(screen.n, 0.0), inside_(screen.count, 0), damping_(first_damping) {
        evaluate_at(b);
        list_near(first_cut * screen_->largest(direction()));
        for (const Near &one : near_) largest_ = std::max(largest_, one.size);
        last_ = largest_;
    }

    // The largest |v_j| for w = 0.
    double largest() const { return largest_; }

    // Find the optimum for another threshold; false where it was not found.
    bool advance(const Goal &goal) {
        prepare(goal);
        steps_ = 0;
        for (double accuracy = first_accuracy; accuracy > least_accuracy;) {
            descend(goal, accuracy);
            list_near(std::clamp(2 * goal.next - goal.threshold, tuning_.least_cut * goal.threshold, tuning_.most_cut * goal.threshold));
            if (gap(goal, near_.size(), [&](size_t k) { return near_[k].size; }) <= gap_fraction * goal.gap(primal(goal))) {
                last_ = goal.threshold;
                return true;
            }
            if (std::chrono::steady_clock::now() > goal.end || !std::isfinite(value_)) return false;
            const Index added = extend(goal.threshold);
            if (Index(set_.size()) > tuning_.most_columns) return false;
            if (!added) accuracy *= accuracy_factor;
        }
        return false;
    }

    // Appends the model that was found last.
    void append_to(PathModels &models) const {
        for (size_t k = 0; k < set_.size(); ++k) {
            if (w_[k] == 0) continue;
            models.columns.push_back(set_[k]);
            models.weights.push_back(w_[k]);
        }
        for (const Near &one : near_) models.near.push_back(one.size);
        const size_t before = models.multipliers.size();
        models.multipliers.resize(before + screen_->n, 0.0);
        for (Index i = 0; i < n_; ++i) models.multipliers[before + rows_[i]] = a_[i];
        models.starts.push_back(Index(models.columns.size()));
        models.near_starts.push_back(Index(models.near.size()));
        models.cut.push_back(cut_);
        models.b.push_back(b_);
        models.loss.push_back(value_);
        models.steps.push_back(steps_);
    }

  private:
    // `python -m benchmarks.race --sparse` on leukemia.
    static constexpr Index batch = 16;                  // columns that may always enter the working set at once, and zero weights that may always stay
    static constexpr Index newton_steps = 30;           // at most, on one working set
    static constexpr double first_cut = 0.9;            // columns listed at the start, as a fraction of a lower bound on the largest |v_j| for w = 0
    static constexpr double least_strong = 0.5;         // lower bound on the strong rule's level for new columns, as a fraction of the threshold
    static constexpr double gap_fraction = 0.9;         // of the gap asked for, at which a model is accepted
    static constexpr double first_accuracy = 0.1;       // of the working set's own gap, as a fraction of the gap asked for
    static constexpr double accuracy_factor = 1e-2;     // by which it shrinks where no column was missing
    static constexpr double least_accuracy = 1e-8;      // at which the path gives up
    static constexpr double progress = 0.9;             // a Newton step that leaves more than this fraction of the gap has stalled,
    static constexpr Index most_stalls = 3;             // which it may do so often on one working set
    static constexpr double model_accuracy = 1e-6;      // of a quadratic model's minimum, as a fraction of the working set's accuracy
    static constexpr double first_damping = 1e-2;       // least second derivative of the loss in a model, as a fraction of its smoothness;
    static constexpr double least_damping = 1e-10;      // it falls tenfold after a full step,
    static constexpr double most_damping = 1.0;         // and rises tenfold after a shorter one,
    static constexpr Index most_halvings = 10;          // of which there are so many at most
    static constexpr Index intercept_steps = 4;         // Newton steps of the intercept for fixed weights
    static constexpr double intercept_balance = 1e-13;  // |sum p a| at the best intercept, as a fraction of sum |p a|

    double primal(const Goal &goal) const {
        double sizes = 0, squares = 0;
        for (const double x : w_) {
            sizes += std::fabs(x);
            squares += x * x;
        }
        return value_ + goal.threshold * sizes + 0.5 * goal.ridge * squares;
    }

    // P - D at the largest feasible multiple theta <= 1 of the multipliers, or at theta = 1 where there is a ridge, from |v_j| = size(k) of
    // some columns.
    template <class Size>
    double gap(const Goal &goal, size_t count, Size &&size) const {
        double largest = 0, excess = 0;
        for (size_t k = 0; k < count; ++k) {
            largest = std::max(largest, size(k));
            const double over = std::max(0.0, size(k) - goal.threshold);
            excess += over * over;
        }
        const bool ridge = goal.ridge > 0;
        const double theta = ridge || largest <= goal.threshold ? 1.0 : goal.threshold / largest;
        return primal(goal) - loss_.dual(a_.data(), theta) + (ridge ? excess / (2 * goal.ridge) : 0.0);
    }

    // The working set for the next threshold: without zero weights if they are many, with the columns of the strong rule.
    void prepare(const Goal &goal) {
        const double strong = std::max(2 * goal.threshold - last_, least_strong * goal.threshold);
        const Index alive = Index(set_.size()) - std::count(w_.begin(), w_.end(), 0.0);
        if (Index(set_.size()) > alive + alive / 2 + batch) {
            Index kept = 0;
            for (size_t k = 0; k < set_.size(); ++k) {
                inside_[set_[k]] = w_[k] != 0;
                if (w_[k] == 0) continue;
                set_[kept] = set_[k];
                w_[kept++] = w_[k];
            }
            set_.resize(kept);
            w_.resize(kept);
        }
        extend(strong);
    }

    // Adds columns above a size to the working set, the largest if they are many; returns how many.
    Index extend(double above) {
        const auto end = std::partition(near_.begin(), near_.end(), [&](const Near &one) { return one.size > above && !inside_[one.column]; });
        const auto last = near_.begin() + std::min(end - near_.begin(), std::max(batch, Index(set_.size()) / 2));
        std::nth_element(near_.begin(), last, end, [](const Near &a, const Near &b) { return a.size > b.size; });
        std::sort(near_.begin(), last, [](const Near &a, const Near &b) { return a.column < b.column; });
        for (auto one = near_.begin(); one < last; ++one) {
            set_.push_back(one->column);
            w_.push_back(0);
            inside_[one->column] = 1;
        }
        return last - near_.begin();
    }

    // Newton steps on the working set, until its own gap is `accuracy` times the gap asked for.
    void descend(const Goal &goal, double accuracy) {
        double last = infinity;
        for (Index step = 0, stalls = 0; step < newton_steps; ++step) {
            v_.resize(set_.size());
            for (size_t k = 0; k < set_.size(); ++k) v_[k] = padded_dot(columns_[set_[k]], pa_.data(), size_);
            const double enough = goal.gap(primal(goal)), now = gap(goal, v_.size(), [&](size_t k) { return std::fabs(v_[k]); });
            stalls += !(now <= progress * last);
            if (now <= accuracy * enough || stalls > most_stalls || !std::isfinite(now) || std::chrono::steady_clock::now() > goal.end) return;
            last = now;
            newton(goal, model_accuracy * accuracy * enough);
        }
    }

    // To the minimum of a quadratic model with the intercept eliminated, or a part of that step, or nowhere if P does not fall.
    void newton(const Goal &goal, double enough) {
        const Index size = Index(set_.size());
        const double before = primal(goal);
        double total = 0;
        for (Index i = 0; i < n_; ++i) total += c_[i] = p_[i] * std::max(h_[i], damping_ * loss_.smoothness);
        H_.resize(size * size);
        mean_.assign(size, 0.0);
        for (Index k = 0; k < size && intercept_; ++k) mean_[k] = padded_dot(columns_[set_[k]], c_.data(), size_) / total;
        columns_.gram(set_, c_, total, mean_, H_.data());
        for (Index k = 0; k < size; ++k) H_[k * size + k] += goal.ridge;
        slope_.resize(size);
        for (Index k = 0; k < size; ++k) slope_[k] = goal.ridge * w_[k] - v_[k] + mean_[k] * imbalance_;
        old_ = target_ = w_;
        threshold_.assign(size, goal.threshold * (1 + 1e-12));
        for (Index k = Index(first_.size()); k <= size; ++k) first_.push_back(k);
        Quadratic(H_.data(), size, Groups{first_.data(), first_.data(), size}, threshold_.data(), target_.data(), slope_.data()).minimise(solve_, enough);
        double shift = intercept_ ? imbalance_ / total : 0.0;
        for (Index k = 0; k < size; ++k) shift -= mean_[k] * (target_[k] - old_[k]);
        ++steps_;
        line_search(goal, before, shift);
    }

    // From the old weights to the target, and the intercept by a shift; or half of that step, ...; or nowhere.
    void line_search(const Goal &goal, double before, double shift) {
        const double b = b_;
        Index halvings = 0;
        for (double t = 1;; t = ++halvings < most_halvings ? 0.5 * t : 0.0) {
            for (size_t k = 0; k < w_.size(); ++k) w_[k] = t == 1 ? target_[k] : old_[k] + t * (target_[k] - old_[k]);
            b_ = b + t * shift;
            evaluate();
            if (primal(goal) <= before * (1 + 1e-14) || t == 0) break;
        }
        damping_ = std::clamp(damping_ * (halvings ? 10.0 : 0.1), least_damping, most_damping);
    }

    // Scores, the best intercept, multipliers and the mean loss at the weights.
    void evaluate() {
        std::fill(product_.begin(), product_.end(), 0.0);
        for (size_t k = 0; k < set_.size(); ++k)
            if (w_[k] != 0) add(DenseLine<double>{columns_[set_[k]], size_}, w_[k], product_.data());
        evaluate_at(b_);
        for (Index k = 0; k < intercept_steps && intercept_; ++k) {
            double size = 0, curvature = 0;
            for (Index i = 0; i < n_; ++i) {
                size += std::fabs(pa_[i]);
                curvature += p_[i] * h_[i];
            }
            if (std::fabs(imbalance_) <= intercept_balance * size || !(curvature > 0)) return;
            const double before = value_, b = b_;
            evaluate_at(b + imbalance_ / curvature);
            if (value_ <= before * (1 + 1e-14)) continue;
            evaluate_at(b);
            return;
        }
    }

    // With another intercept; scores are made of the same product each time, so that rounding errors do not add up.
    void evaluate_at(double b) {
        b_ = b;
        for (Index i = 0; i < n_; ++i) z_[i] = product_[i] + b;
        value_ = loss_.respond(z_.data(), a_.data(), h_.data());
        imbalance_ = 0;
        for (Index i = 0; i < n_; ++i) imbalance_ += pa_[i] = p_[i] * a_[i];
    }

    // p a for the screen: with c_j between a column and the screen's, v_j differs by c_j sum_i p_i a_i.
    Direction direction() {
        for (Index i = 0; i < n_; ++i) q_[rows_[i]] = pa_[i];
        return screen_->direction(q_.data(), offset_ * std::fabs(imbalance_));
    }

    // Lists every column with |v_j| > cut. A column that is not listed either was skipped by the screen, which proves |v_j| <= cut for the
    // exact product of its entries with pa_, or its product was computed in float64 and found at most the cut. So with the error bound e_j
    // of such a product, |v_j| <= cut + e_j for every column that is not listed; those that are listed carry their computed |v_j|.
    void list_near(double cut) {
        cut_ = cut;
        near_.clear();
        screen_->above(direction(), cut, [&](Index j) {
            columns_.keep(j);
            const double size = std::fabs(padded_dot(columns_[j], pa_.data(), size_));
            if (!(size <= cut)) near_.push_back({j, size});
        });
    }

    SparsePathTuning tuning_;
    const Int16Screen *screen_;
    double offset_;
    ColumnCache columns_;
    std::vector<Index> rows_;
    Index n_, size_;
    std::vector<double> p_;
    SmoothLoss loss_;
    bool intercept_;
    double b_;
    Posv solve_;
    std::vector<double> product_, z_, a_, h_, pa_, c_, q_;  // X w, scores, ...; imbalance_ is the sum of pa_; product_, pa_ and c_ are padded with zeros
    std::vector<char> inside_;
    std::vector<Index> set_, first_;
    std::vector<double> w_, v_, H_, mean_, slope_, threshold_, old_, target_;
    std::vector<Near> near_;
    double value_ = 0, imbalance_ = 0, damping_, last_ = 0, largest_ = 0, cut_ = 0;
    Index steps_ = 0;
};

}  // namespace fenchel
