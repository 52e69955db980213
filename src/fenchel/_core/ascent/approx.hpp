// Accelerated proximal coordinate descent (APPROX, Fercoq and Richtarik 2015), one of N blocks per step, for f(A x) + sum_g psi_g(x_g).
//
//   y = (1 - theta) x + theta z,   z_g' = argmin  <grad_g f(A y), .> + (N theta L_g / 2) |. - z_g|^2 + psi_g,   x' = y + N theta (z' - z).
//
// All of x and y change in every step. But with y = z + theta^2 u and x' = z' + theta^2 u' only block g of z and u does:
// u_g' = u_g - (1 - N theta) / theta^2 (z_g' - z_g). A z and A u are stored side by side, so that a step costs only its columns of A.
// With theta = 1 / N in every step, u stays zero: plain coordinate descent. A step over tau different blocks has N / tau for N and larger L_g.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "ascent/dual_ascent.hpp"
#include "ascent/proximal_gradient.hpp"

namespace fenchel {

struct Sequence {
    double blocks;      // N, or N / tau for steps over tau blocks at once
    double theta;       // of the next step
    double square = 0;  // theta^2 of the last step, x = z + square u
    bool accelerated = true;

    double step_factor() const { return blocks * theta; }
    // The change of u for a unit change of z.
    double u_factor() const { return accelerated ? -(1 - blocks * theta) / (theta * theta) : 0.0; }
    // theta'^2 = (1 - theta') theta^2
    void advance() {
        square = theta * theta;
        if (accelerated) theta = 2 * theta / (std::sqrt(theta * theta + 4) + theta);
    }
};

// A z and A u, interleaved: they are always used together.
struct Images {
    double *both;
    double at(Index i, double square) const { return both[2 * i] + square * both[2 * i + 1]; }
    void shift(Index i, double by, double u_factor) { both[2 * i] += by, both[2 * i + 1] += by * u_factor; }
    template <class Line>
    void move(const Line &x, double by, double u_factor) {
        const double second = by * u_factor;
#pragma omp simd
        for (Index k = 0; k < x.size; ++k) {
            double *entry = both + 2 * x.index(k);
            const double value = static_cast<double>(x.value[k]);
            entry[0] += by * value, entry[1] += second * value;
        }
    }
};

// The weights of an image, by a link without a state.
template <class Link>
struct ImageWeights {
    Images images;
    double square;
    const Link &link;
    double operator[](Index j) const { return link.weight(images.at(j, square)); }
};

// Sums of a pass at y: the gap terms of the visited blocks; for weights the largest |v_g| / threshold_g; for samples the losses.
struct PassSums {
    double gap = 0, worst = 0, loss = 0;
};

// Over the weights: f the mean loss, psi_g(w) = threshold_g |w|_2 + ridge/2 |w|_2^2. Block g has the columns column[first[g]] ..; if there
// is an intercept, it is the last block, without columns, stored after the last weight.
struct WeightBlocks {
    const Index *column, *first;
    const double *curvature;  // L_g
    const double *threshold;
    double ridge;
    Index count;     // of blocks, without the intercept
    Index features;  // of weights, without the intercept
    bool intercept;
};

struct Targets {
    const double *y, *p;  // p_i = s_i / W
    Index size;
};

template <class Loss, class Matrix>
class WeightSteps {
  public:
    // mean, if not null: the mean of the z from which the steps are taken is added.
    WeightSteps(const Loss &loss, const Matrix &columns, const WeightBlocks &blocks, const Targets &data, Images images, double *z, double *u, double *mean)
        : loss_(loss), columns_(columns), blocks_(blocks), data_(data), images_(images), z_(z), u_(u), mean_(mean) {}

    // Steps over `batch` blocks of the order each.
    PassSums pass(Sequence &sequence, const Index *order, Index size, Index batch) {
        PassSums sums;
        const Index steps = size / batch;
        if (mean_)
            for (Index j = 0; j < blocks_.features + blocks_.intercept; ++j) mean_[j] += z_[j];
        for (Index k = 0; k < steps; ++k) {
            const Index *drawn = order + k * batch;
            moves_.clear();
            for (Index i = 0; i < batch; ++i) propose(sequence, drawn[i], sums);
            const double left = double(steps - 1 - k) / double(steps), u_factor = sequence.u_factor();
            const double *move = moves_.data();
            for (Index i = 0; i < batch; ++i) move = apply(drawn[i], move, u_factor, left);
            sequence.advance();
        }
        return sums;
    }

  private:
    double derivative(Index i, double square, double b) const { return -data_.p[i] * multiplier(loss_, images_.at(i, square) + b, data_.y[i]); }
    double intercept(double square) const { return blocks_.intercept ? z_[blocks_.features] + square * u_[blocks_.features] : 0.0; }

    // The moves of a block's z at the current y.
    void propose(const Sequence &sequence, Index g, PassSums &sums) {
        const double square = sequence.theta * sequence.theta, b = intercept(square);
        if (g == blocks_.count) {
            double slope = 0;
            for (Index i = 0; i < data_.size; ++i) slope += derivative(i, square, b);
            moves_.push_back(-slope / (sequence.step_factor() * blocks_.curvature[g]));
            return;
        }
        const Index *column = blocks_.column + blocks_.first[g];
        const Index size = blocks_.first[g + 1] - blocks_.first[g];
        const double c = sequence.step_factor() * blocks_.curvature[g], bound = c + blocks_.ridge, threshold = blocks_.threshold[g];
        double length = 0, slope_length = 0, y_length = 0, inner = 0;
        const std::size_t start = moves_.size();
        moves_.resize(start + std::size_t(size));
        double *next = moves_.data() + start;
        for (Index k = 0; k < size; ++k) {
            const auto x = columns_.line(column[k]);
            double slope = 0;
            for (Index l = 0; l < x.size; ++l) slope += static_cast<double>(x.value[l]) * derivative(x.index(l), square, b);
            const double y = z_[column[k]] + square * u_[column[k]];
            next[k] = bound > 0 ? (c * z_[column[k]] - slope) / bound : 0.0;
            length += next[k] * next[k], slope_length += slope * slope, y_length += y * y, inner += slope * y;
        }
        length = std::sqrt(length), slope_length = std::sqrt(slope_length);
        add_gap(sums, slope_length, y_length, inner, threshold);
        const double keep = threshold == 0 ? 1.0 : (length > 0 ? std::max(0.0, 1 - threshold / (bound * length)) : 0.0);
        for (Index k = 0; k < size; ++k) next[k] = keep * next[k] - z_[column[k]];
    }

    // Makes the moves of a block, and returns where those of the next begin. `left` is the part of the pass that is still to come.
    const double *apply(Index g, const double *move, double u_factor, double left) {
        if (g == blocks_.count) {
            shift(blocks_.features, *move, u_factor, left);
            return move + 1;
        }
        for (Index k = blocks_.first[g]; k < blocks_.first[g + 1]; ++k, ++move) {
            if (*move == 0) continue;
            const Index j = blocks_.column[k];
            shift(j, *move, u_factor, left);
            images_.move(columns_.line(j), *move, u_factor);
        }
        return move;
    }

    void shift(Index j, double move, double u_factor, double left) {
        z_[j] += move, u_[j] += u_factor * move;
        if (mean_) mean_[j] += left * move;
    }

    // R_g(y_g) + R_g*(v_g) - v_g.y_g with v_g = -slope; for a norm without the conjugate, which is infinite where worst > 1.
    void add_gap(PassSums &sums, double slope, double y_square, double inner, double threshold) const {
        sums.gap += threshold * std::sqrt(y_square) + 0.5 * blocks_.ridge * y_square + inner;
        const double excess = std::max(0.0, slope - threshold);
        if (blocks_.ridge > 0) sums.gap += excess * excess / (2 * blocks_.ridge);
        else if (threshold > 0) sums.worst = std::max(sums.worst, slope / threshold);
    }

    const Loss &loss_;
    const Matrix &columns_;
    WeightBlocks blocks_;
    Targets data_;
    Images images_;
    double *z_, *u_, *mean_;
    std::vector<double> moves_;
};

// Over the samples: f = R*(v(alpha)), which is smooth, psi_i = (s_i / W) phi*(-.; y_i). The images are v / mu of z and of u, with the
// intercept of the quadratic around a centre (see dual_ascent.hpp) as last entry. The step for z_i is that of dual ascent with N theta q_i
// for q_i. For a link with a state a step costs O(d): theta, and with it every entry of y's image, changes in every step.
// With `local.factor` > 0 such a link takes local.factor times the curvature along the row at y instead of q_i, if that is less, but no less
// than local.least of q_i. The second derivative of R* is a diagonal less a square f f', so that x_i'diag(slopes)x_i bounds the curvature.
struct Tangent {
    double weight, slope;  // w_j, and entry j of the diagonal
};

// At zero the slope is the bound by strong convexity.
inline Tangent tangent(const Power &link, double u) {
    if (link.factor == 0) return {0, 1};
    const double part = link.factor / link.scale * std::pow(std::fabs(u) / link.scale, link.q() - 2);
    return {part * u, part * (link.q() - 1)};
}

inline Tangent tangent(const Entropic &link, double u) { return {link.weight(u), link.term(u) / link.sum}; }

struct Local {
    double factor = 0, least = 0;
    // From (s_i / W) x_i'H x_i; `rest` is the intercept's part of q_i.
    double bound(double q, double curvature, double rest) const {
        return std::min(q, std::max(factor * curvature, least * (q - rest)) + rest);
    }
};

template <class Loss, class Link, class Matrix>
PassSums accelerate_samples(const Loss &loss, Link link, const Matrix &rows, const Samples &data, const Scale &scale, Sequence &sequence, const Index *order,
                            Index steps, Images images, double *z, double *u, const Local &local = {}) {
    PassSums sums;
    std::vector<double> image(Link::stateless ? 0 : rows.width);
    for (Index k = 0; k < steps; ++k) {
        const Index i = order[k];
        const double square = sequence.theta * sequence.theta, u_factor = sequence.u_factor();
        const double s = data.s[i], y = data.y[i];
        const auto x = rows.line(i);
        double score = images.at(rows.width, square), q = data.q[i];
        if constexpr (Link::stateless) {
            score += dot(x, ImageWeights<Link>{images, square, link});
        } else {
            for (Index j = 0; j < rows.width; ++j) image[j] = images.at(j, square);
            link.begin(image.data(), rows.width);
            if (local.factor > 0) {
                double curvature = 0;
                for (Index k = 0; k < x.size; ++k) {
                    const double value = static_cast<double>(x.value[k]);
                    const Tangent at = tangent(link, image[x.index(k)]);
                    score += value * at.weight, curvature += value * value * at.slope;
                }
                q = local.bound(q, s * scale.step * curvature, s * scale.shift);
            } else {
                score += Weights{image.data()}.score(x, link);
            }
        }
        const double a = z[i] + square * u[i], phi = loss.value(score, y), gap = phi + loss.conjugate(-a, y) + a * score;
        sums.loss += s * phi;
        if (gap < infinity) sums.gap += s * gap;  // rounding may have moved a slightly out of its domain
        const double move = loss.dual_step(z[i], score, sequence.step_factor() * q, y) - z[i];
        if (move != 0) {
            z[i] += move, u[i] += u_factor * move;
            images.move(x, s * move * scale.step, u_factor);
            images.shift(rows.width, s * move * scale.shift, u_factor);
        }
        sequence.advance();
    }
    return sums;
}

}  // namespace fenchel
