// The Primal Gradient Solver (Zhu et al. 2009): one pass over samples in a given order, for one or several models at a time.
//
// Mean loss + lam/2 |w|_p^2. With v_t minus the sum of the first t subgradients, each the mean over a batch,
//
//     w_t = grad R*(v_t / (t + offset)),                                    on |w|_p <= radius if there is one.
//
// offset = 1 is the paper's. offset = 0 with p = 2 is gradient descent with steps 1/(lam t), and with an `eager` projection, which
// shortens v together with w, Pegasos (Shalev-Shwartz, Singer and Srebro 2007). p = 1 stands for the signed entropy on |w|_1 <= radius.
//
// For p = 2, w = f v / (lam (t + offset)) with a scalar f, so a step costs the entries of its rows. For p < 2 the weights are computed
// after every batch.
//
// Models that differ in lam or in their labels lie side by side, entry j of model c at [j stride + c]: a row is read once for all.
// The weight of a constant column is stored after the other entries. An intercept without a penalty has steps intercept_step / sqrt(t).
//
// Averages have the weights t + offset (Lacoste-Julien, Schmidt and Bach 2012): for p = 2 the sum of f v over the steps, stored as
// total v - held, because a row counts from the step in which it enters v. For p = 2 the entries of held lie behind those of v, in the
// same cache line.
#pragma once
#include "ascent/dual_ascent.hpp"
#include "losses/exponential.hpp"

namespace fenchel {

struct GradientOptions {
    const double *lam;      // of each model
    const double *radius;   // of each model, infinite for none
    const double *classes;  // the label of each model, which has y = 1 where the label is this and -1 elsewhere; null: y as it is
    Index models, batch;
    double p, offset, constant, intercept_step;
    double W;    // mean weight of a sample, so that s_i / W has the mean 1
    bool eager;  // whether a projection shortens v
};

// What a pass changes; vectors of the models side by side.
struct GradientState {
    double *v;     // with held between its rows if p = 2 and averages are asked for
    double *w;     // the weights if p < 2, else null
    double *held;  // the sum of (t + offset) w if p < 2 and averages are asked for, else null
    bool averages;
    double *drawn;  // receives the weights, then the intercepts, after step `draw`; may be null
    double *f, *total, *b, *b_total;
    // Sums: losses of samples before their step, wrong signs, (mean |slope| |x|)^2 / step with the 2-norm, or the largest entry if p = 1; losses, wrong signs
    // and weights of the average, for every fourth sample.
    double *loss, *mistakes, *slopes, *average_loss, *average_mistakes, *average_weight;
    Index t, draw;
    double *squared = nullptr;  // |v|^2 of each model, kept from pass to pass where rows do not tell; may be null
};

// f(M) with a constant M if there are few models, so that loops over them are unrolled; else with M = 0.
template <class F>
void with_count(Index models, F &&f) {
    switch (models) {
        case 1:
            return f(std::integral_constant<Index, 1>{});
        case 2:
            return f(std::integral_constant<Index, 2>{});
        case 3:
            return f(std::integral_constant<Index, 3>{});
        case 4:
            return f(std::integral_constant<Index, 4>{});
        case 5:
            return f(std::integral_constant<Index, 5>{});
        case 6:
            return f(std::integral_constant<Index, 6>{});
        case 8:
            return f(std::integral_constant<Index, 8>{});
        case 10:
            return f(std::integral_constant<Index, 10>{});
        default:
            return f(std::integral_constant<Index, 0>{});
    }
}

// Some entries of each of several models.
struct Strided {
    double *values;
    Index models, stride;
    double *row(Index j) const { return values + j * stride; }
};

// out_c = x . v_c
template <class Line>
void dots(const Line &x, const Strided &v, double *out) {
    if (v.models == 1 && v.stride == 1) return void(*out = dot(x, v.values));
    with_count(v.models, [&](auto fixed) {
        constexpr Index M = decltype(fixed)::value;
        const Index models = M ? M : v.models;
        double own[M ? M : 1] = {}, *sums = M ? own : out;
        if (!M) std::fill(out, out + models, 0.0);
        for (Index k = 0; k < x.size; ++k) {
            const double value = static_cast<double>(x.value[k]), *row = v.row(x.index(k));
#pragma omp simd
            for (Index c = 0; c < models; ++c) sums[c] += value * row[c];
        }
        if (M) std::copy(own, own + models, out);
    });
}

// v_c += a_c x, and where averages are held behind v, held_c += b_c x.
template <class Line>
void add_each(const Line &x, const double *a, const double *b, const Strided &v) {
    if (v.models == 1 && v.stride == 1) return add_by_fours(x, *a, v.values);
    with_count(v.models, [&](auto fixed) {
        constexpr Index M = decltype(fixed)::value;
        const Index models = M ? M : v.models;
        for (Index k = 0; k < x.size; ++k) {
            const double value = static_cast<double>(x.value[k]);
            double *row = v.row(x.index(k));
#pragma omp simd
            for (Index c = 0; c < models; ++c) row[c] += value * a[c];
            if (!b) continue;
#pragma omp simd
            for (Index c = 0; c < models; ++c) row[models + c] += value * b[c];
        }
    });
}

// phi'(z; y) and phi(z; y).
struct Evaluated {
    double slope, value;
};

template <class Loss>
inline Evaluated evaluated(const Loss &loss, double z, double y) {
    return {loss.derivative(z, y), loss.value(z, y)};
}

// One exponential for both, without branches.
inline Evaluated evaluated(const Logistic &, double z, double y) {
    const double m = y * z, e = exp_nonpositive(-std::fabs(m));
    return {-y * (m >= 0 ? e : 1.0) / (1 + e), log1p_of_fraction(e) + std::max(-m, 0.0)};
}

template <class Line>
double squared_norm(const Line &x) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (Index k = 0; k < x.size; ++k) sum += static_cast<double>(x.value[k]) * static_cast<double>(x.value[k]);
    return sum;
}

// The p-norm link of all models, w = grad R*(v / time): of p-norm |v|_q / (lam time), or radius. Entries of v beside the largest neither
// overflow nor underflow when raised to the power q - 1.
class PowerLink {
  public:
    PowerLink(double p, const double *radius, Index models) : p_(p), q_(p / (p - 1)), radius_(radius), largest_(models), sum_(models), factor_(models) {}

    // The entries of v and w have the same places.
    void weights(const double *v, double *w, Index size, const double *lam, double time) {
        const Index m = static_cast<Index>(sum_.size());
        std::fill(largest_.begin(), largest_.end(), 0.0);
        std::fill(sum_.begin(), sum_.end(), 0.0);
        if (m == 1) {
            double largest = 0;
#pragma omp simd reduction(max : largest)
            for (Index k = 0; k < size; ++k) largest = std::max(largest, std::fabs(v[k]));
            largest_[0] = largest;
        } else {
            each(size, m, [&](Index k, Index c) { largest_[c] = std::max(largest_[c], std::fabs(v[k])); });
        }
        for (Index c = 0; c < m; ++c)
            if (!(largest_[c] > 0)) largest_[c] = 1;
        if (m == 1) {
            double sum = 0;
            const double largest = largest_[0];
#pragma omp simd reduction(+ : sum)
            for (Index k = 0; k < size; ++k) sum += power(v[k], largest, w[k]);
            sum_[0] = sum;
        } else {
            each(size, m, [&](Index k, Index c) { sum_[c] += power(v[k], largest_[c], w[k]); });
        }
        for (Index c = 0; c < m; ++c) {
            const double length = largest_[c] * std::pow(sum_[c], 1 / q_);  // |v|_q
            factor_[c] = sum_[c] > 0 ? std::min(length / (lam[c] * time), radius_[c]) * std::pow(sum_[c], -1 / p_) : 0.0;
        }
        each(size, m, [&](Index k, Index c) { w[k] *= factor_[c]; });
    }

  private:
    template <class F>
    static void each(Index size, Index m, F &&f) {
        if (m == 1) {
#pragma omp simd
            for (Index k = 0; k < size; ++k) f(k, 0);
        } else {
            for (Index j = 0; j < size; ++j) {
#pragma omp simd
                for (Index c = 0; c < m; ++c) f(j * m + c, c);
            }
        }
    }
    // w = sign(v) (|v| / largest)^(q-1); returns (|v| / largest)^q.
    double power(double v, double largest, double &w) const {
        constexpr double least = 1e-300;
        const double ratio = std::fabs(v) / largest;
        const double value = ratio > least ? exp_nonpositive((q_ - 1) * log_positive(std::max(ratio, least))) : 0.0;
        w = std::copysign(value, v);
        return ratio * value;
    }
    double p_, q_;
    const double *radius_;
    std::vector<double> largest_, sum_, factor_;
};

// The link of the signed entropy, w = B sinh(theta) / sum cosh(theta) with theta = v / (lam time) and B = radius: exponentiated gradients.
class EntropicLink {
  public:
    EntropicLink(const double *radius, Index models) : radius_(radius), models_(models) {}

    void weights(const double *v, double *w, Index size, const double *lam, double time) const {
        for (Index c = 0; c < models_; ++c) {
            const double rate = 1 / (lam[c] * time);
            double top = 0, sum = 0;
            for (Index k = c; k < size * models_; k += models_) top = std::max(top, std::fabs(v[k]));
            for (Index k = c; k < size * models_; k += models_) {
                const double grown = exp_nonpositive((std::fabs(v[k]) - top) * rate), shrunk = exp_nonpositive(-(std::fabs(v[k]) + top) * rate);
                w[k] = std::copysign(grown - shrunk, v[k]), sum += grown + shrunk;
            }
            for (Index k = c; k < size * models_; k += models_) w[k] *= radius_[c] / sum;
        }
    }

  private:
    const double *radius_;
    Index models_;
};

template <class Loss, class Matrix>
class PrimalGradient {
  public:
    PrimalGradient(const Loss &loss, const Matrix &rows, const double *y, const double *s, const GradientOptions &options, GradientState &state)
        : loss_(loss), rows_(rows), y_(y), s_(s), o_(options), state_(state), m_(options.models), width_(rows.width), p2_(options.p == 2),
          bounded_(std::any_of(options.radius, options.radius + options.models, [](double radius) { return radius < infinity; })),
          v_{state.v, m_, p2_ && state.averages ? 2 * m_ : m_}, w_{p2_ ? state.v : state.w, m_, v_.stride}, raw_(m_), move_(m_), held_(m_), squared_(m_),
          scale_(m_, 1.0), mean_(m_), power_(options.p, options.radius, m_), entropic_(options.radius, m_) {
        if (state.squared) std::copy(state.squared, state.squared + m_, squared_.begin());
        else if (p2_ && bounded_) for_entries([&](Index j, Index c) { squared_[c] += v_.row(j)[c] * v_.row(j)[c]; });
    }

    // One step for each batch; the last one may be shorter.
    void pass(const Index *order, Index size) {
        std::vector<double> slopes(std::min(o_.batch, size) * m_);
        for (Index first = 0; first < size; first += o_.batch) {
            const Index count = std::min(o_.batch, size - first);
            rescale();
            std::fill(mean_.begin(), mean_.end(), 0.0);
            for (Index k = 0; k < count; ++k) {
                prefetch(order, first + k, size);
                evaluate(order[first + k], count, slopes.data() + k * m_);
            }
            ++state_.t;
            for (Index k = 0; k < count; ++k) move(rows_.line(order[first + k]), slopes.data() + k * m_, count);
            settle(slopes.data(), count);
        }
        if (state_.squared) std::copy(squared_.begin(), squared_.end(), state_.squared);
    }

  private:
    double time() const { return static_cast<double>(state_.t) + o_.offset; }

    template <class F>
    void for_entries(F &&f) const {
        for (Index j = 0; j <= width_; ++j)
            for (Index c = 0; c < m_; ++c) f(j, c);
    }

    void prefetch(const Index *order, Index k, Index size) const {
#if defined(__GNUC__)
        if (k + 8 < size) rows_.prefetch_start(order[k + 8]);
        if (k + 4 < size) rows_.prefetch(order[k + 4]);
#endif
    }

    // The weights are scale v for p = 2, zero before the first step, and w else.
    void rescale() {
        if (p2_)
            for (Index c = 0; c < m_; ++c) scale_[c] = state_.t > 0 ? state_.f[c] * shortening(c) / (o_.lam[c] * time()) : 0.0;
    }
    // The factor that brings f v / (lam time) into the ball.
    double shortening(Index c) const {
        if (!(o_.radius[c] < infinity)) return 1;
        const double length = state_.f[c] * std::sqrt(std::max(squared_[c], 0.0)) / (o_.lam[c] * time());
        return length > o_.radius[c] ? o_.radius[c] / length : 1;
    }

    // x . v of each model, or x . w if p < 2, with the constant column.
    template <class Line>
    void products(const Line &x) {
        dots(x, w_, raw_.data());
        for (Index c = 0; c < m_; ++c) raw_[c] += o_.constant * w_.row(width_)[c];
    }

    // Slopes of a sample over the size of the batch, for each model; losses and mistakes before the step.
    void evaluate(Index i, Index count, double *slope) {
        const auto x = rows_.line(i);
        products(x);
        const double weight = s_[i] / o_.W, share = weight / static_cast<double>(count), y = y_[i];
        const double length = dual_length(x);
#pragma omp simd
        for (Index c = 0; c < m_; ++c) {
            const double z = scale_[c] * raw_[c] + state_.b[c], own = target(y, c);
            const auto [derivative, value] = evaluated(loss_, z, own);
            slope[c] = share * derivative;
            state_.loss[c] += weight * value;
            state_.mistakes[c] += z * own > 0 ? 0.0 : weight;  // NaN is a mistake
            mean_[c] += std::fabs(slope[c]) * length;
        }
        if (state_.averages && visits_++ % 4 == 0) evaluate_average(x, weight, y);
    }
    // |x|_2, at least |x|_q; for p = 1 the largest entry.
    template <class Line>
    double dual_length(const Line &x) const {
        if (o_.p > 1) return std::sqrt(squared_norm(x) + o_.constant * o_.constant);
        double top = std::fabs(o_.constant);
        for (Index k = 0; k < x.size; ++k) top = std::max(top, std::fabs(static_cast<double>(x.value[k])));
        return top;
    }
    double target(double y, Index c) const { return o_.classes ? (y == o_.classes[c] ? 1.0 : -1.0) : y; }

    Strided held() const { return p2_ ? Strided{v_.values + m_, m_, v_.stride} : Strided{state_.held, m_, m_}; }

    template <class Line>
    void evaluate_average(const Line &x, double weight, double y) {
        const double t = static_cast<double>(state_.t), time = std::max(t * (t + 1) / 2 + o_.offset * t, 1.0);
        dots(x, held(), held_.data());
        for (Index c = 0; c < m_; ++c) {
            const double sum = held_[c] + o_.constant * held().row(width_)[c];
            const double z = ((p2_ ? (state_.total[c] * raw_[c] - sum) / o_.lam[c] : sum) + state_.b_total[c]) / time, own = target(y, c);
            state_.average_loss[c] += weight * evaluated(loss_, z, own).value;
            state_.average_mistakes[c] += z * own > 0 ? 0.0 : weight;
            state_.average_weight[c] += weight;
        }
    }

    template <class Line>
    void move(const Line &x, const double *slope, Index count) {
        bool idle = true;
        for (Index c = 0; c < m_; ++c) {
            move_[c] = -slope[c] / state_.f[c];
            held_[c] = move_[c] * state_.total[c];
            idle &= slope[c] == 0;
        }
        if (idle) return;
        if (p2_ && bounded_) {
            if (count > 1) products(x);  // other samples of the batch have moved v
            const double norm = squared_norm(x) + o_.constant * o_.constant;
            for (Index c = 0; c < m_; ++c) squared_[c] += move_[c] * (2 * raw_[c] + move_[c] * norm);
        }
        const bool holds = p2_ && state_.averages;
        add_each(x, move_.data(), holds ? held_.data() : nullptr, v_);
        double *last = v_.row(width_);
        for (Index c = 0; c < m_; ++c) {
            last[c] += move_[c] * o_.constant;
            if (holds) last[m_ + c] += held_[c] * o_.constant;
        }
    }

    // After a step: intercepts, projections, weights, averages.
    void settle(const double *slopes, Index count) {
        const double step = static_cast<double>(state_.t);
        for (Index c = 0; c < m_; ++c) {
            state_.slopes[c] += mean_[c] * mean_[c] / step;
            if (o_.intercept_step > 0) {
                double slope = 0;
                for (Index k = 0; k < count; ++k) slope += slopes[k * m_ + c];
                state_.b[c] -= o_.intercept_step / std::sqrt(step) * slope;
            }
            state_.b_total[c] += time() * state_.b[c];
            if (!p2_) continue;
            double factor = shortening(c);
            if (o_.eager) {
                state_.f[c] *= factor, factor = 1;
                if (state_.f[c] < 1e-3) fold(c);  // total v - held would cancel
            }
            state_.total[c] += state_.f[c] * factor;
        }
        if (!p2_) {
            const Index entries = width_ + (o_.constant != 0);
            if (o_.p > 1) power_.weights(state_.v, state_.w, entries, o_.lam, time());
            else entropic_.weights(state_.v, state_.w, entries, o_.lam, time());
            if (state_.averages)
                for (Index k = 0; k < (width_ + 1) * m_; ++k) state_.held[k] += time() * state_.w[k];
        }
        if (state_.drawn && state_.t == state_.draw) draw();
    }

    void fold(Index c) {
        double &f = state_.f[c], &total = state_.total[c];
        for (Index j = 0; j <= width_; ++j) {
            double *row = v_.row(j);
            if (state_.averages) row[m_ + c] -= total * row[c];
            row[c] *= f;
        }
        squared_[c] *= f * f, f = 1, total = 0;
    }

    void draw() {
        rescale();
        for_entries([&](Index j, Index c) { state_.drawn[j * m_ + c] = scale_[c] * w_.row(j)[c]; });
        std::copy(state_.b, state_.b + m_, state_.drawn + (width_ + 1) * m_);
    }

    const Loss &loss_;
    const Matrix &rows_;
    const double *y_, *s_;
    const GradientOptions &o_;
    GradientState &state_;
    const Index m_, width_;
    const bool p2_, bounded_;  // bounded_: whether a model has a radius
    const Strided v_, w_;      // w_: what scores are computed from, v or the weights
    Index visits_ = 0;
    std::vector<double> raw_, move_, held_, squared_, scale_, mean_;
    PowerLink power_;
    EntropicLink entropic_;
};

}  // namespace fenchel
