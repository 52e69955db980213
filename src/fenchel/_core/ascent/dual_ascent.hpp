// Stochastic dual coordinate ascent (Shalev-Shwartz and Zhang 2013): one pass over samples in a given order.
//
// D is maximised over one multiplier after another; u = v / mu = (1/(mu W)) sum_i s_i a_i x_i is updated with it, and the weights
// are a function of u, the link. The step is exact for the 2-norm; for other norms it maximises a lower bound on D by strong
// convexity, with the dual norm of x_i.
// A quadratic on the intercept, rho/2 (b - b0)^2, makes b = b0 + sum_i s_i a_i / (rho W) one more coordinate, stored after
// the entries of u: inverse_rho = 0 switches it off, b0 = 0 is a penalised intercept, and a loop that moves b0 is the
// proximal-point method for an unpenalised one.
#pragma once
#include "ascent/threads.hpp"
#include "losses/links.hpp"

namespace fenchel {

struct Samples {
    const double *y, *s;
    const double *q;  // s_i (|x_i|^2 / mu + 1 / rho) / W: the derivative of a score with respect to its own multiplier
};

struct Scale {
    double step;   // 1 / (mu W): of u with respect to s_i a_i x_i
    double shift;  // 1 / (rho W): of b with respect to s_i a_i
    double W;      // sum of the weights
};

// The next multiplier of a sample, and its loss and gap term before the step.
struct Visit {
    double next, phi, gap;
};

template <class Loss>
inline Visit visit(const Loss &loss, double a, double z, double q, double y, bool measured) {
    const double next = loss.dual_step(a, z, q, y);
    if (!measured) return {next, 0, 0};
    const double phi = loss.value(z, y);
    return {next, phi, phi + loss.conjugate(-a, y) + a * z};
}

// Newton for s in t' = sigmoid(-s) as in Logistic::dual_step, until a step is short: the remaining error is its square, less
// than the multiplier's change. The last step is made on t', along the tangent, which saves an exponential.
inline Visit visit(const Logistic &loss, double a, double z, double q, double y, bool measured) {
    const double m = y * z, base = m - q * a * y;
    const bool right = base + 0.5 * q > 0;
    const double low = right ? std::max(base, 0.0) : base, high = right ? base + q : std::min(base + q, 0.0);
    double s = clip(m, low, high), t = 0, next = s;
    for (int k = 0; k < 60; ++k) {
        t = Logistic::sigmoid(-s);
        next = clip(s - (s - base - q * t) / (1 + q * t * (1 - t)), low, high);
        if (std::fabs(next - s) <= 0.02) break;
        s = next;
    }
    const double phi = measured ? loss.value(z, y) : 0.0;
    return {y * (t - t * (1 - t) * (next - s)), phi, measured ? phi + loss.conjugate(-a, y) + a * z : 0.0};
}

template <class Loss>
constexpr bool costly = std::is_same_v<Loss, Logistic> || std::is_same_v<Loss, Exponential>;

// w as a function of u, entry by entry.
template <class Link>
struct Linked {
    const double *u;
    const Link &link;
    double operator[](Index j) const { return link.weight(u[j]); }
};

// u, with the intercept after it.
struct Weights {
    double *values;
    template <class Link, class Line>
    double score(const Line &x, const Link &link) const {
        if constexpr (std::is_same_v<Link, Linear>) return dot(x, values);
        else return dot(x, Linked<Link>{values, link});
    }
    double intercept(Index width) const { return values[width]; }
    template <class Link, class Line>
    void move(const Line &x, double a, Link &link, Index width, double shift) {
        values[width] += shift;
        if constexpr (Link::stateless) {
            add_by_fours(x, a, values);
        } else {
            for (Index k = 0; k < x.size; ++k) {
                double &entry = values[x.index(k)];
                const double before = entry;
                entry += a * static_cast<double>(x.value[k]);
                link.changed(before, entry);
            }
            link.settle();
        }
    }
};

// Software prefetch in two stages: the numbers of a sample, then its row.
template <class Matrix>
void prefetch_samples(const Matrix &rows, const Samples &data, const double *alpha, const Index *order, Index k, Index steps) {
#if defined(__GNUC__)
    constexpr Index near = 4, far = 8;
    if (k + far < steps) {
        const Index i = order[k + far];
        rows.prefetch_start(i);
        __builtin_prefetch(alpha + i), __builtin_prefetch(data.y + i);
        __builtin_prefetch(data.s + i), __builtin_prefetch(data.q + i);
    }
    if (k + near < steps) rows.prefetch(order[k + near]);
#endif
}

// Whether the multiplier would stay the same for any score within `margin`.
template <class Loss>
bool stays(const Loss &loss, double a, double z, double q, double y, double margin) {
    return loss.dual_step(a, z + margin, q, y) == a && loss.dual_step(a, z - margin, q, y) == a;
}

// Samples stay in the order unless their multipliers stay the same for all scores within the margin; all stay if it is infinite.
struct Unsettled {
    double margin;
    template <class Loss>
    bool operator()(const Loss &loss, double a, double z, double q, double y, double change, double) const {
        return change != 0 || !(margin < infinity) || !stays(loss, a, z, q, y, margin);
    }
};

// All samples stay; writes down by how much their steps raise D (times a factor that all samples share).
struct Recorded {
    mutable double *gains;
    template <class Loss>
    bool operator()(const Loss &, double, double, double, double, double, double gain) const {
        *gains++ = gain;
        return true;
    }
};

// Samples stay if their steps raise D by more than `least`, in the same units.
struct Rewarding {
    double least;
    template <class Loss>
    bool operator()(const Loss &, double, double, double, double, double, double gain) const {
        return gain > least;
    }
};

template <class Keep = Unsettled>
struct EpochOptions {
    Keep keep;           // which samples stay in the order
    Index stride;        // every stride-th sample is measured
    double damping = 1;  // factor on the curvatures q; below 1 steps are over-relaxed; down to 1/2 D still rises in the 2-norm
    double least = 0;    // steps that raise D by less, in the units of `gain`, are not made
};

// One step for each sample in `order`, which is compacted in place if samples are dropped. `held`, if given, receives
// sum_k k (change at step k), which gives the average over the pass.
template <class Link, class Loss, class Matrix, class Keep, class Model>
Epoch ascend(const Loss &loss, const Matrix &rows, const Samples &data, Link &link, const Scale &scale, Index *order, Index steps, double *alpha, Model u,
             const EpochOptions<Keep> &options, double *held) {
    Epoch sums;
    Estimate estimate(options.stride);
    for (Index k = 0; k < steps; ++k) {
        prefetch_samples(rows, data, alpha, order, k, steps);
        const Index i = order[k];
        const double s = data.s[i], q = options.damping * data.q[i], y = data.y[i], a = alpha[i];
        if (s == 0) continue;
        const auto x = rows.line(i);
        const double z = u.score(x, link) + u.intercept(rows.width);
        const bool measured = estimate.due(k, s);
        const auto [next, phi, gap] = visit(loss, a, z, q, y, measured);
        const double change = next - a, gain = s * q * change * change;
        if (measured) sums.loss += s * phi, sums.gap += s * gap;
        if (options.keep(loss, a, z, q, y, change, gain)) order[sums.kept++] = i;
        if (change == 0 || gain < options.least) continue;
        sums.move = std::max(sums.move, q * std::fabs(change));
        sums.path += gain, ++sums.moves;
        alpha[i] = next;
        u.move(x, s * change * scale.step, link, rows.width, s * change * scale.shift);
        if (held) held[i] += change * static_cast<double>(k + 1);
    }
    return estimate.scaled(sums);
}

// One step for each sample in `order`, then further passes over those whose steps raised D by more than the mean, as long as they
// do, until these passes have made as many steps as the first. Few samples have large steps left, most of all nearly equal rows,
// whose multipliers follow each other.
template <class Link, class Loss, class Matrix>
void ascend_again(const Loss &loss, const Matrix &rows, const Samples &data, Link &link, const Scale &scale, const Index *order, Index steps, double *alpha,
                  Weights u, double damping) {
    std::vector<Index> rest(order, order + steps);
    std::vector<double> gains(steps);
    const auto pass = [&](const auto &keep, Index count) {
        return ascend(loss, rows, data, link, scale, rest.data(), count, alpha, u, EpochOptions<std::decay_t<decltype(keep)>>{keep, 1, damping}, nullptr);
    };
    const Epoch first = pass(Recorded{gains.data()}, steps);
    const Rewarding above_mean{first.path / static_cast<double>(std::max<Index>(steps, 1))};
    Index left = 0;
    for (Index k = 0; k < first.kept; ++k)
        if (gains[k] > above_mean.least) rest[left++] = rest[k];
    for (Index made = left; left > 0 && made <= steps; made += left) left = pass(above_mean, left).kept;
}

// `ascend` in threads.
template <class Link, class Loss, class Matrix>
std::optional<Epoch> ascend_in_threads(const Loss &loss, const Matrix &rows, const Samples &data, const Link &link, const Scale &scale, Index *order,
                                       Index steps, double *alpha, double *u, const EpochOptions<> &options, const Threads &threads, Buffer &buffer) {
    const EpochOptions damped{options.keep, options.stride, threads.damping()};
    const Scale stretched{scale.step * threads.stretch(), scale.shift * threads.stretch(), scale.W};
    return epoch_in_threads(threads, order, steps, u, rows.width + 1, buffer, [&](Index, Index *mine, Index size, double *copy) {
        Link own = link;
        own.begin(copy, rows.width);
        return ascend(loss, rows, data, own, stretched, mine, size, alpha, Weights{copy}, damped, nullptr);
    });
}

// Modified SGD (section 4 of the paper), the first pass from zero: sample t takes the step of the problem of the first t
// samples, with total weight W_t. Until the end u is (1/mu) sum_i s_i a_i x_i, divided by W_t when used.
template <class Link, class Loss, class Matrix>
void first_pass(const Loss &loss, const Matrix &rows, const Samples &data, Link link, const Scale &scale, const Index *order, Index steps, double *alpha,
                double *u) {
    Weights own{u};
    double weight = 0;
    for (Index k = 0; k < steps; ++k) {
        prefetch_samples(rows, data, alpha, order, k, steps);
        const Index i = order[k];
        if (data.s[i] == 0) continue;
        weight += data.s[i];
        const auto x = rows.line(i);
        const double z = (own.score(x, link.stretched(weight)) + own.intercept(rows.width)) / weight;
        alpha[i] = loss.dual_step(0, z, data.q[i] * (scale.W / weight), data.y[i]);
        const double size = data.s[i] * alpha[i] * scale.W;
        own.move(x, size * scale.step, link, rows.width, size * scale.shift);
    }
    for (Index j = 0; j <= rows.width; ++j) u[j] /= scale.W;
}

}  // namespace fenchel
