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
    Index count;
    double norm(Index g, const double *w) const {
        double sum = 0;
        for (Index i = first[g]; i < first[g + 1]; ++i) sum += w[column[i]] * w[column[i]];
        return std::sqrt(sum);
    }
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
    const double *c;          // curvature of the model, one number a sample,
    const double *curvature;  // and an upper bound on that of each group
    const double *threshold;  // of each group: lam times its weight
    const double *mean;       // of each column, weighted by c, where there is an intercept; zeros without one
    double total;             // sum_i c_i
    double ridge;             // lam (1 - l1_ratio) of an elastic net
};

// Coordinate descent on the weights of groups of columns. An unpenalised intercept is at its best after every step, as it must be before
// the first one (sum_i m_i = 0): a step along x_j is one along x_j - mean_j. The model's derivative is m + shift c, with the intercept's
// change shift = -mean.(w - w0), which is left out of m.
//
// Passes over all groups, and in between over those that are not zero, until no step of a pass over all has changed the model by `enough`
// (curvature times the squared step), or `passes` are made, counted in groups visited.
template <class Matrix>
void descend_along(const Matrix &columns, const Groups &groups, const ColumnModel &model, double *w, double *m, double passes, double enough) {
    constexpr Index inner = 10;
    const bool waits = columns.outgrows_cache();
    double shift = 0;
    std::vector<double> next;
    std::vector<Index> alive;
    const auto slope = [&](Index j) { return dot(columns.line(j), static_cast<const double *>(m)) + shift * model.total * model.mean[j] + model.ridge * w[j]; };
    const auto move = [&](Index j, double step) {
        w[j] += step;
        add_weighted(columns.line(j), step, model.c, m);
        shift -= step * model.mean[j];
    };
    const auto step = [&](Index g) { return group_step(groups, g, model.curvature[g] + model.ridge, model.threshold[g], w, next, slope, move); };
    for (double made = 0; made < passes;) {
        double most = 0;
        alive.clear();
        for (Index g = 0; g < groups.count; ++g) {
            for (Index i = groups.first[g]; waits && i < groups.first[g + 1]; ++i) prefetch_after(columns.line(groups.column[i]));
            most = std::max(most, step(g));
            if (groups.norm(g, w) > 0) alive.push_back(g);
        }
        made += 1;
        if (most <= enough) break;
        const double fraction = static_cast<double>(alive.size()) / static_cast<double>(groups.count);
        for (Index pass = 0; pass < inner && made < passes && 2 * Index(alive.size()) < groups.count; ++pass) {
            double change = 0;
            for (const Index g : alive) change = std::max(change, step(g));
            made += fraction;
            if (change <= 0.3 * most) break;
        }
    }
}

}  // namespace fenchel
