// Optima along a grid of lam where samples are few and dense: single weights, all with one threshold.
//
// Newton steps on a working set of columns (quadratic.hpp), then a look at all others (shorts.hpp), until the gap of the whole problem is
// small enough.
#pragma once
#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <vector>

#include "sparse/column_cache.hpp"
#include "sparse/quadratic.hpp"
#include "sparse/int16_screen.hpp"

namespace fenchel {

// A smooth loss on the samples that count: its mean at scores z, with multipliers a = -phi' and curvatures h; and the mean of -phi*(-theta a).
struct SmoothLoss {
    std::function<double(const double *z, double *a, double *h)> respond;
    std::function<double(const double *a, double theta)> dual;
    double smoothness;
};

// What is asked for, and the threshold that will be asked for next.
struct Goal {
    double threshold, ridge, next, tol, atol;
    std::chrono::steady_clock::time_point end;
    double gap(double primal) const { return std::max(tol * primal, atol); }
};

// |v_j| of a column near the threshold.
struct Near {
    Index column;
    double size;
};

class WidePath {
  public:
    // All columns, in short and as they are; the shares of the samples that count, and which they are among those of `shorts`; and the
    // intercept that is best where all weights are zero, if there is one. Columns may differ from those of `shorts` by constants, each no
    // larger than `apart` S_j.
    WidePath(const ShortColumns &shorts, double apart, KeptColumns columns, std::vector<Index> rows, std::vector<double> p, SmoothLoss loss, bool intercept,
             double b, Posv *solve)
        : shorts_(&shorts),
          apart_(apart),
          columns_(std::move(columns)),
          rows_(std::move(rows)),
          n_(Index(rows_.size())),
          size_(padded(n_)),
          p_(std::move(p)),
          loss_(std::move(loss)),
          intercept_(intercept),
          b_(b),
          solve_(solve),
          product_(size_, 0.0),
          z_(n_, b),
          a_(n_),
          h_(n_),
          pa_(size_, 0.0),
          c_(size_, 0.0),
          q_(shorts.n, 0.0),
          inside_(shorts.count, 0) {
        value_ = loss_.respond(z_.data(), a_.data(), h_.data());
        weigh();
        look(0.9 * shorts_->largest(direction()));
        for (const Near &one : near_) largest_ = std::max(largest_, one.size);
        last_ = largest_;
    }

    // The largest |v_j| where all weights are zero.
    double largest() const { return largest_; }

    // Go to the optimum of another threshold; false where this is not the way to it.
    bool advance(const Goal &goal) {
        prepare(goal);
        steps_ = 0;
        for (double accuracy = 0.1; accuracy > 1e-8;) {
            descend(goal, accuracy);
            weigh();
            look(std::clamp(2 * goal.next - goal.threshold, 0.5 * goal.threshold, 0.95 * goal.threshold));
            double largest = 0, excess = 0;
            for (const Near &one : near_) measure(one.size, goal, largest, excess);
            if (gap(goal, largest, excess) <= 0.9 * goal.gap(primal(goal))) {
                last_ = goal.threshold;
                return true;
            }
            if (std::chrono::steady_clock::now() > goal.end || !std::isfinite(value_)) return false;
            const Index added = extend(goal.threshold);
            if (Index(set_.size()) > most_columns) return false;
            if (!added) accuracy *= 1e-2;
        }
        return false;
    }

    // The model: columns of the working set with their weights, the intercept, multipliers, the mean loss, columns near the threshold, and
    // how many Newton steps it took.
    const std::vector<Index> &columns() const { return set_; }
    const std::vector<double> &weights() const { return w_; }
    Index samples() const { return shorts_->n; }
    template <class F>
    void multipliers(F &&f) const {
        for (Index i = 0; i < n_; ++i) f(rows_[i], a_[i]);
    }
    const std::vector<Near> &near() const { return near_; }
    double intercept() const { return b_; }
    double loss() const { return value_; }
    Index steps() const { return steps_; }

  private:
    double penalty(const std::vector<double> &w, const Goal &goal) const {
        double sizes = 0, squares = 0;
        for (const double x : w) {
            sizes += std::fabs(x);
            squares += x * x;
        }
        return goal.threshold * sizes + 0.5 * goal.ridge * squares;
    }
    double primal(const Goal &goal) const { return value_ + penalty(w_, goal); }

    static void measure(double size, const Goal &goal, double &largest, double &excess) {
        largest = std::max(largest, size);
        const double over = std::max(0.0, size - goal.threshold);
        excess += over * over;
    }

    // P - D at the largest feasible multiple of the multipliers, up to themselves, or at themselves where there is a ridge.
    double gap(const Goal &goal, double largest, double excess) const {
        const bool ridge = goal.ridge > 0;
        const double theta = ridge || largest <= goal.threshold ? 1.0 : goal.threshold / largest;
        return primal(goal) - loss_.dual(a_.data(), theta) + (ridge ? excess / (2 * goal.ridge) : 0.0);
    }

    // The working set for the next threshold: without what has been zero for long, with what may become alive.
    void prepare(const Goal &goal) {
        const double strong = std::max(2 * goal.threshold - last_, 0.5 * goal.threshold);
        const Index alive = Index(set_.size()) - std::count(w_.begin(), w_.end(), 0.0);
        if (Index(set_.size()) > alive + alive / 2 + few) {
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

    // Takes in columns above a size that are not in the working set, the largest if they are many; how many.
    Index extend(double above) {
        more_.clear();
        for (const Near &one : near_)
            if (one.size > above && !inside_[one.column]) more_.push_back(one);
        const size_t most = std::max<size_t>(few, set_.size() / 2);
        if (more_.size() > most) {
            std::nth_element(more_.begin(), more_.begin() + Index(most), more_.end(), [](const Near &a, const Near &b) { return a.size > b.size; });
            more_.resize(most);
        }
        for (const Near &one : more_) {
            set_.push_back(one.column);
            w_.push_back(0);
            inside_[one.column] = 1;
        }
        return Index(more_.size());
    }

    // Newton steps on the working set, until its own gap is a part of what is asked for.
    void descend(const Goal &goal, double accuracy) {
        double last = infinity;
        for (Index step = 0, stuck = 0; step < most_steps; ++step) {
            weigh();
            v_.resize(set_.size());
            double largest = 0, excess = 0;
            for (size_t k = 0; k < set_.size(); ++k) {
                v_[k] = padded_dot(columns_[set_[k]], pa_.data(), size_);
                measure(std::fabs(v_[k]), goal, largest, excess);
            }
            const double enough = goal.gap(primal(goal)), now = gap(goal, largest, excess);
            stuck += !(now <= 0.9 * last);
            if (now <= accuracy * enough || stuck > 3 || !std::isfinite(now) || std::chrono::steady_clock::now() > goal.end) return;
            last = now;
            newton(goal, 1e-6 * accuracy * enough);
        }
    }

    void weigh() {
        for (Index i = 0; i < n_; ++i) pa_[i] = p_[i] * a_[i];
    }

    // To the minimum of a quadratic model, or part of the way, or nowhere if P does not fall.
    void newton(const Goal &goal, double enough) {
        const Index size = Index(set_.size());
        const double before = primal(goal);
        double miss = 0, total = 0;
        for (Index i = 0; i < n_; ++i) {
            c_[i] = p_[i] * std::max(h_[i], damping_ * loss_.smoothness);
            miss += pa_[i];
            total += c_[i];
        }
        H_.resize(size * size);
        mean_.assign(size, 0.0);
        for (Index k = 0; k < size && intercept_; ++k) mean_[k] = padded_dot(columns_[set_[k]], c_.data(), size_) / total;
        columns_.gram(set_, c_, total, mean_, H_.data());
        for (Index k = 0; k < size; ++k) H_[k * size + k] += goal.ridge;
        slope_.resize(size);
        for (Index k = 0; k < size; ++k) slope_[k] = goal.ridge * w_[k] - v_[k] + mean_[k] * miss;
        old_ = goal_ = w_;
        threshold_.assign(size, goal.threshold * (1 + 1e-12));
        for (Index k = Index(first_.size()); k <= size; ++k) first_.push_back(k);
        Quadratic(H_.data(), size, Groups{first_.data(), first_.data()}, size, threshold_.data(), goal_.data(), slope_.data())
            .minimise(solve_, 5, 60, 8, enough);
        double shift = intercept_ ? miss / total : 0.0;
        for (Index k = 0; k < size; ++k) shift -= mean_[k] * (goal_[k] - old_[k]);
        ++steps_;
        go(goal, before, b_, shift);
    }

    // From the old weights to those that are the goal, the intercept from b by a shift; or half of the way, ...
    void go(const Goal &goal, double before, double b, double shift) {
        double t = 1;
        for (int halves = 0; halves < 10; ++halves, t *= 0.5) {
            for (size_t k = 0; k < w_.size(); ++k) w_[k] = t == 1 ? goal_[k] : old_[k] + t * (goal_[k] - old_[k]);
            b_ = b + t * shift;
            respond();
            if (primal(goal) <= before * (1 + 1e-14)) {
                damping_ = std::clamp(damping_ * (t == 1 ? 0.1 : 10.0), 1e-10, 1.0);
                return;
            }
        }
        w_ = old_;
        b_ = b;
        respond();
        damping_ = std::min(10 * damping_, 1.0);
    }

    // Scores, the intercept at its best, multipliers and the mean loss at the weights.
    void respond() {
        std::fill(product_.begin(), product_.end(), 0.0);
        for (size_t k = 0; k < set_.size(); ++k)
            if (w_[k] != 0) add(DenseLine<double>{columns_[set_[k]], size_}, w_[k], product_.data());
        respond_at(b_);
        for (int k = 0; k < 4 && intercept_; ++k) {
            double miss = 0, size = 0, bend = 0;
            for (Index i = 0; i < n_; ++i) {
                miss += p_[i] * a_[i];
                size += std::fabs(p_[i] * a_[i]);
                bend += p_[i] * h_[i];
            }
            if (std::fabs(miss) <= 1e-13 * size || !(bend > 0)) return;
            const double before = value_, b = b_;
            respond_at(b + miss / bend);
            if (value_ <= before * (1 + 1e-14)) continue;
            respond_at(b);
            return;
        }
    }

    // With another intercept; scores are made of the same product each time, so that nothing adds up.
    void respond_at(double b) {
        b_ = b;
        for (Index i = 0; i < n_; ++i) z_[i] = product_[i] + b;
        value_ = loss_.respond(z_.data(), a_.data(), h_.data());
    }

    // p a, for a look at all columns: with c_j between a column and that in short, v_j differ by c_j sum_i p_i a_i.
    Direction direction() {
        double miss = 0;
        for (Index i = 0; i < n_; ++i) {
            q_[rows_[i]] = pa_[i];
            miss += pa_[i];
        }
        return shorts_->direction(q_.data(), apart_ * std::fabs(miss));
    }

    // |v_j| of every column that exceeds `cut`.
    void look(double cut) {
        near_.clear();
        shorts_->above(direction(), cut, [&](Index j) {
            columns_.keep(j);
            const double size = std::fabs(padded_dot(columns_[j], pa_.data(), size_));
            if (!(size <= cut)) near_.push_back({j, size});
        });
    }

    static constexpr Index few = 16, most_columns = 3000, most_steps = 30;

    const ShortColumns *shorts_;
    double apart_;
    KeptColumns columns_;
    std::vector<Index> rows_;
    Index n_, size_;
    std::vector<double> p_;
    SmoothLoss loss_;
    bool intercept_;
    double b_;
    Posv *solve_;
    std::vector<double> product_, z_, a_, h_, pa_, c_, q_;  // X w, scores, ...; those with zeros behind them are padded
    std::vector<char> inside_;
    std::vector<Index> set_, first_;
    std::vector<double> w_, v_, H_, mean_, slope_, threshold_, old_, goal_;
    std::vector<Near> near_, more_;
    double value_ = 0, damping_ = 1e-2, last_ = 0, largest_ = 0;
    Index steps_ = 0;
};

}  // namespace fenchel
