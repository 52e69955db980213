// Primal coordinate descent on a quadratic model of the loss, with a penalty that acts on single weights or on groups of them.
//
// The model at weights w0 with scores z0 is sum_i m_i u_i + c_i u_i^2 / 2 for u = X (w - w0), m_i = (s_i / W) phi'(z0_i),
// c_i = (s_i / W) h_i: exact for the squared loss with h = 1, Newton's with h = phi''(z0). The kernel keeps m + c u up to date, the
// model's derivative with respect to the scores, so that the derivative along column x_j is x_j.m.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "losses.hpp"
#include "products.hpp"

namespace fenchel {

// sum_i a_i x_i^2 over a line.
template <class Line>
double weighted_square(const Line &x, const double *a) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (Index k = 0; k < x.size; ++k) sum += static_cast<double>(x.value[k]) * static_cast<double>(x.value[k]) * a[x.index(k)];
    return sum;
}

// m += t c x
template <class Line>
void add_weighted(const Line &x, double t, const double *c, double *m) {
    for (Index k = 0; k < x.size; ++k) m[x.index(k)] += t * c[x.index(k)] * static_cast<double>(x.value[k]);
}

// Groups of columns: group g has the columns column[first[g]] .. column[first[g + 1]].
struct Groups {
    const Index *column, *first;
};

struct ColumnModel {
    const double *c;          // curvature of the model, one number a sample
    const double *curvature;  // of each group: an upper bound on that of the model along any of its directions
    const double *threshold;  // of each group: lam times its weight
    double ridge;             // lam (1 - l1_ratio) of an elastic net
    double samples_curvature; // sum_i c_i, for the intercept; 0 if there is none
    Index samples;
};

// The step of one group; returns its curvature times the squared length of the way.
template <class Matrix>
double descend_group(const Matrix &columns, const Groups &groups, const ColumnModel &d, Index g, double *w, double *m, std::vector<double> &next) {
    const Index first = groups.first[g], size = groups.first[g + 1] - first;
    const double bound = d.curvature[g] + d.ridge;
    if (!(bound > 0)) return 0;
    double norm = 0;
    for (Index k = 0; k < size; ++k) {
        const Index j = groups.column[first + k];
        next[k] = w[j] - (dot(columns.line(j), static_cast<const double *>(m)) + d.ridge * w[j]) / bound;
        norm += next[k] * next[k];
    }
    norm = std::sqrt(norm);
    const double shrink = norm > 0 ? std::max(0.0, 1 - d.threshold[g] / (bound * norm)) : 0.0;
    double way = 0;
    for (Index k = 0; k < size; ++k) {
        const Index j = groups.column[first + k];
        const double step = shrink * next[k] - w[j];
        if (step == 0) continue;
        w[j] += step;
        add_weighted(columns.line(j), step, d.c, m);
        way += step * step;
    }
    return bound * way;
}

// The unpenalised intercept's step.
inline double descend_intercept(const ColumnModel &d, double &b, double *m) {
    if (!(d.samples_curvature > 0)) return 0;
    double slope = 0;
    for (Index i = 0; i < d.samples; ++i) slope += m[i];
    const double step = -slope / d.samples_curvature;
    b += step;
    for (Index i = 0; i < d.samples; ++i) m[i] += step * d.c[i];
    return d.samples_curvature * step * step;
}

// Passes over the groups named, and in between over those of them that are not zero, until no step of a pass over all of them has
// changed the model by `enough` (curvature times the squared step), or `passes` are made. Returns the passes made, counted in groups
// visited over groups named.
template <class Matrix>
double descend(const Matrix &columns, const Groups &groups, const ColumnModel &d, const Index *which, Index count, double *w, double &b, double *m,
               double passes, double enough) {
    constexpr Index inner = 10;
    Index largest = 0;
    for (Index k = 0; k < count; ++k) largest = std::max(largest, groups.first[which[k] + 1] - groups.first[which[k]]);
    std::vector<double> next(largest);
    std::vector<Index> alive;
    double made = 0;
    while (made < passes) {
        double most = descend_intercept(d, b, m);
        alive.clear();
        for (Index k = 0; k < count; ++k) {
            most = std::max(most, descend_group(columns, groups, d, which[k], w, m, next));
            for (Index i = groups.first[which[k]]; i < groups.first[which[k] + 1]; ++i)
                if (w[groups.column[i]] != 0) {
                    alive.push_back(which[k]);
                    break;
                }
        }
        made += 1;
        if (most <= enough) break;
        const double share = static_cast<double>(alive.size()) / static_cast<double>(std::max<Index>(count, 1));
        for (Index pass = 0; pass < inner && made < passes && 2 * static_cast<Index>(alive.size()) < count; ++pass) {
            double change = descend_intercept(d, b, m);
            for (const Index g : alive) change = std::max(change, descend_group(columns, groups, d, g, w, m, next));
            made += share;
            if (change <= 0.3 * most) break;
        }
    }
    return made;
}

}  // namespace fenchel
