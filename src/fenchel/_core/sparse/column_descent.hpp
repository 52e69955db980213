// Primal coordinate descent on a quadratic model of the loss, with a penalty that acts on single weights or on groups of them.
//
// The model at weights w0 with scores z0 is sum_i m_i u_i + c_i u_i^2 / 2 for u = X (w - w0), m_i = (s_i / W) phi'(z0_i),
// c_i = (s_i / W) h_i: exact for the squared loss with h = 1, Newton's with h = phi''(z0). The kernel keeps m + c u up to date, the
// model's derivative with respect to the scores, so that the derivative along column x_j is x_j.m.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "linalg/products.hpp"
#include "losses/losses.hpp"

namespace fenchel {

// m += t c x
template <class Line>
void add_weighted(const Line &x, double t, const double *c, double *m) {
    for (Index k = 0; k < x.size; ++k) m[x.index(k)] += t * c[x.index(k)] * static_cast<double>(x.value[k]);
}

// Groups of columns: group g has the columns column[first[g]] .. column[first[g + 1]].
struct Groups {
    const Index *column, *first;
};

// Minimises  slope.(w'_g - w_g) + bound/2 |w'_g - w_g|^2 + threshold |w'_g|  over the weights of a group, with slope(j) for each and
// move(j, step) for each that changes; returns bound times the squared length of the step.
template <class Slope, class Move>
double group_step(const Groups &groups, Index g, double bound, double threshold, double *w, std::vector<double> &next, Slope &&slope, Move &&move) {
    const Index *column = groups.column + groups.first[g];
    const Index size = groups.first[g + 1] - groups.first[g];
    next.resize(std::max<size_t>(next.size(), size));
    if (!(bound > 0)) {  // columns of zeros
        for (Index k = 0; k < size && threshold > 0; ++k) w[column[k]] = 0;
        return 0;
    }
    double norm = 0, moved = 0;
    for (Index k = 0; k < size; ++k) {
        next[k] = w[column[k]] - slope(column[k]) / bound;
        norm += next[k] * next[k];
    }
    norm = std::sqrt(norm);
    const double shrink = norm > 0 ? std::max(0.0, 1 - threshold / (bound * norm)) : 0.0;
    for (Index k = 0; k < size; ++k) {
        const double step = shrink * next[k] - w[column[k]];
        if (step == 0) continue;
        move(column[k], step);
        moved += step * step;
    }
    return bound * moved;
}

struct ColumnModel {
    const double *c;          // curvature of the model, one number a sample
    const double *threshold;  // of each group: lam times its weight
    double ridge;             // lam (1 - l1_ratio) of an elastic net
    bool intercept;
    Index samples;
};

// Coordinate descent on the weights of groups of columns. An unpenalised intercept is minimised over after every step: with
// e_j = sum_i c_i x_ij and C = sum_i c_i that is a step along the column x_j - e_j / C. The model's derivative is m + shift c, where shift is
// the change of the intercept.
template <class Matrix>
class ColumnDescent {
  public:
    ColumnDescent(const Matrix &columns, Groups groups, Index count, const double *curvature, const ColumnModel &model, double *w, double *m)
        : columns_(columns), groups_(groups), model_(model), w_(w), m_(m), curvature_(curvature, curvature + count), weighted_sum_(columns.lines, 0.0) {
        if (!model.intercept) return;
        for (Index i = 0; i < model.samples; ++i) total_ += model.c[i];
        if (!(total_ > 0)) return;
        for (Index g = 0; g < count; ++g) {
            double reduction = 0;
            for (Index i = groups.first[g]; i < groups.first[g + 1]; ++i) {
                const Index j = groups.column[i];
                weighted_sum_[j] = dot(columns.line(j), model.c);
                reduction += weighted_sum_[j] * weighted_sum_[j] / total_;
            }
            curvature_[g] = std::max(curvature_[g] - reduction, 1e-12 * curvature_[g]);
        }
    }

    // Passes over all groups, and in between over those that are not zero, until no step of a pass over all has changed the model by
    // `enough` (curvature times the squared step), or `passes` are made, counted in groups visited.
    void descend(double passes, double enough) {
        constexpr Index inner = 10;
        const bool waits = columns_.outgrows_cache();
        const Index count = Index(curvature_.size());
        std::vector<Index> alive;
        for (double made = 0; made < passes;) {
            double most = balance();
            alive.clear();
            for (Index g = 0; g < count; ++g) {
                if (waits) prefetch_group(g);
                most = std::max(most, step(g));
                if (is_alive(g)) alive.push_back(g);
            }
            made += 1;
            if (most <= enough) break;
            const double fraction = static_cast<double>(alive.size()) / static_cast<double>(std::max<Index>(count, 1));
            for (Index pass = 0; pass < inner && made < passes && 2 * Index(alive.size()) < count; ++pass) {
                double change = balance();
                for (const Index g : alive) change = std::max(change, step(g));
                made += fraction;
                if (change <= 0.3 * most) break;
            }
        }
    }

    // Adds the intercept's shift to the derivative and returns it.
    double settle() {
        for (Index i = 0; i < model_.samples; ++i) m_[i] += shift_ * model_.c[i];
        return shift_;
    }

  private:
    bool is_alive(Index g) const {
        for (Index i = groups_.first[g]; i < groups_.first[g + 1]; ++i)
            if (w_[groups_.column[i]] != 0) return true;
        return false;
    }

    void prefetch_group(Index g) const {
        for (Index i = groups_.first[g]; i < groups_.first[g + 1]; ++i) prefetch_after(columns_.line(groups_.column[i]));
    }

    // The intercept's own step.
    double balance() {
        if (!(total_ > 0)) return 0;
        double slope = shift_ * total_;
        for (Index i = 0; i < model_.samples; ++i) slope += m_[i];
        shift_ -= slope / total_;
        return slope * slope / total_;
    }

    double step(Index g) {
        const auto slope = [&](Index j) { return dot(columns_.line(j), static_cast<const double *>(m_)) + shift_ * weighted_sum_[j] + model_.ridge * w_[j]; };
        const auto move = [&](Index j, double step) {
            w_[j] += step;
            add_weighted(columns_.line(j), step, model_.c, m_);
            if (total_ > 0) shift_ -= step * weighted_sum_[j] / total_;
        };
        return group_step(groups_, g, curvature_[g] + model_.ridge, model_.threshold[g], w_, next_, slope, move);
    }

    const Matrix &columns_;
    Groups groups_;
    ColumnModel model_;
    double *w_, *m_, total_ = 0, shift_ = 0;
    std::vector<double> curvature_, weighted_sum_, next_;
};

}  // namespace fenchel
