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
// The weight of a constant column is stored after the other entries. An intercept without a penalty has steps intercept_step / sqrt(t), and
// moves by at most intercept_limit in each.
//
// Averages have the weights t + offset (Lacoste-Julien, Schmidt and Bach 2012): for p = 2 the sum of f v over the steps, stored as
// total v - held, because a row counts from the step in which it enters v. For p = 2 the entries of held lie behind those of v, in the
// same cache line.
#pragma once
#include <array>

#include "ascent/dual_ascent.hpp"
#include "losses/exponential.hpp"

namespace fenchel {

struct GradientOptions {
    const double *lam;      // of each model
    const double *radius;   // of each model, infinite for none
    const double *classes;  // the label of each model, which has y = 1 where the label is this and -1 elsewhere; null: y as it is
    Index models, batch;
    double p, offset, constant, intercept_step, intercept_limit;
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
    double *each = nullptr;     // receives the average's loss of every fourth sample, a row for it, and behind these whether they are mistakes; may be null
};

// f(M) with a constant M for small counts, so that loops over them are unrolled; else with M = 0.
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
        case 12:
            return f(std::integral_constant<Index, 12>{});
        default:
            return f(std::integral_constant<Index, 0>{});
    }
}

// The same for the counts of models whose passes are compiled on their own.
template <class F>
void with_few(Index models, F &&f) {
    switch (models) {
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

// Numbers of M models, in registers; of any count in memory that is given.
template <Index M>
struct Numbers {
    double values[M];
    explicit Numbers(std::vector<double> &) {}
    double &operator[](Index c) { return values[c]; }
};
template <>
struct Numbers<0> {
    double *values;
    explicit Numbers(std::vector<double> &memory) : values(memory.data()) {}
    double &operator[](Index c) { return values[c]; }
};

// Every stride-th number.
template <Index stride>
struct Every {
    const double *values;
    double operator[](Index j) const { return values[stride * j]; }
};

// out_c = x . v_c
template <class Line>
void dots(const Line &x, const Strided &v, double *out) {
    if (v.models == 1 && v.stride <= 2) return void(*out = v.stride == 1 ? dot(x, v.values) : dot(x, Every<2>{v.values}));
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

// x . w and |x|_2^2, with fours of the squares in a register.
template <class T, class I, class Values>
inline std::pair<double, double> dot_and_square(const SparseLine<T, I> &x, const Values w) {
    double sums[4] = {}, squares[4] = {};
    const auto add = [&](Index k, Index lane) {
        const double value = static_cast<double>(x.value[k]);
        sums[lane] += value * w[x.index(k)], squares[lane] += value * value;
    };
    Index k = 0;
    for (; k + 3 < x.size; k += 4)
        for (Index lane = 0; lane < 4; ++lane) add(k + lane, lane);
    for (; k < x.size; ++k) add(k, 0);
    return {(sums[0] + sums[1]) + (sums[2] + sums[3]), (squares[0] + squares[1]) + (squares[2] + squares[3])};
}

// Adds a_c x to each of S vectors, which lie side by side in `values`.
template <std::size_t S, class Line>
inline void add_to_each(const Line &x, const std::array<double, S> a, double *values) {
    if constexpr (S == 1) return add_by_fours(x, a[0], values);
    for (Index k = 0; k < x.size; ++k) {
        const double value = static_cast<double>(x.value[k]);
        double *row = values + static_cast<Index>(S) * x.index(k);
        std::array<double, S> sums;
#pragma omp simd
        for (std::size_t c = 0; c < S; ++c) sums[c] = row[c] + value * a[c];
#pragma omp simd
        for (std::size_t c = 0; c < S; ++c) row[c] = sums[c];
    }
}

// The same for any number of vectors.
template <class Line>
void add_to_many(const Line &x, const double *a, double *values, Index stride) {
    with_count(stride, [&](auto fixed) {
        constexpr Index S = decltype(fixed)::value;
        if constexpr (S > 0) {
            std::array<double, S> own;
            std::copy(a, a + S, own.begin());
            add_to_each(x, own, values);
        } else {
            for (Index k = 0; k < x.size; ++k) {
                const double value = static_cast<double>(x.value[k]);
                double *row = values + stride * x.index(k);
#pragma omp simd
                for (Index c = 0; c < stride; ++c) row[c] += value * a[c];
            }
        }
    });
}

// x . v_c of M models and |x|_2^2 in one loop; entry j of model c is values[2 M j + c].
template <Index M, class Line>
inline double dots_and_square(const Line &x, const double *values, double *out) {
    double even[M] = {}, odd[M] = {}, squares[2] = {};
    const auto add = [&](Index k, double *sums, double &square) {
        const double value = static_cast<double>(x.value[k]), *row = values + 2 * M * x.index(k);
        square += value * value;
#pragma omp simd
        for (Index c = 0; c < M; ++c) sums[c] += value * row[c];
    };
    Index k = 0;
    for (; k + 1 < x.size; k += 2) add(k, even, squares[0]), add(k + 1, odd, squares[1]);
    if (k < x.size) add(k, even, squares[0]);
    for (Index c = 0; c < M; ++c) out[c] = even[c] + odd[c];
    return squares[0] + squares[1];
}

// phi'(z; y), of the logistic loss with one exponential and without branches.
template <class Loss>
inline double slope(const Loss &loss, double z, double y) {
    return loss.derivative(z, y);
}
inline double slope(const Logistic &, double z, double y) {
    return -y / (1 + exp_in_range(std::min(std::max(y * z, -708.0), 708.0)));
}

// phi(z; y), likewise.
template <class Loss>
inline double value(const Loss &loss, double z, double y) {
    return loss.value(z, y);
}
inline double value(const Logistic &, double z, double y) {
    const double m = y * z;
    return log1p_of_fraction(exp_nonpositive(-std::fabs(m))) + std::max(-m, 0.0);
}

// out = phi'(z; y) and out = phi(z; y) of several scores.
template <class Loss>
inline void slopes_of(const Loss &loss, const double *z, const double *y, double *out, Index size) {
#pragma omp simd
    for (Index c = 0; c < size; ++c) out[c] = slope(loss, z[c], y[c]);
}
template <class Loss>
inline void values_of(const Loss &loss, const double *z, const double *y, double *out, Index size) {
#pragma omp simd
    for (Index c = 0; c < size; ++c) out[c] = value(loss, z[c], y[c]);
}

// A loss of any kind, called for the scores of several models at a time: passes over several models are compiled once for all losses.
class AnyLoss {
  public:
    template <class Loss>
    explicit AnyLoss(const Loss &loss)
        : loss_(&loss),
          slopes_([](const void *own, const double *z, const double *y, double *out, Index size) { slopes_of(*static_cast<const Loss *>(own), z, y, out, size); }),
          values_([](const void *own, const double *z, const double *y, double *out, Index size) { values_of(*static_cast<const Loss *>(own), z, y, out, size); }) {}
    friend void slopes_of(const AnyLoss &loss, const double *z, const double *y, double *out, Index size) { loss.slopes_(loss.loss_, z, y, out, size); }
    friend void values_of(const AnyLoss &loss, const double *z, const double *y, double *out, Index size) { loss.values_(loss.loss_, z, y, out, size); }

  private:
    using Function = void (*)(const void *, const double *, const double *, double *, Index);
    const void *loss_;
    Function slopes_, values_;
};

// Sums of losses and of the weights of mistakes over samples. Scores are collected until there are many, because several logarithms
// at once cost little more than one.
template <class Loss>
class LossSums {
  public:
    // each: see `GradientState`
    LossSums(const Loss &loss, Index models, double *losses, double *mistakes, double *each = nullptr)
        : loss_(loss), m_(models), losses_(losses), mistakes_(mistakes), each_(each), z_(room * models), y_(room * models), values_(room * models), s_(room) {}

    // Where the scores of the next sample go, for each model, and where its targets.
    std::pair<double *, double *> next(double weight) {
        if (count_ == room) sum();
        s_[count_] = weight;
        const Index start = m_ * count_++;
        return {z_.data() + start, y_.data() + start};
    }
    // Adds what has been collected.
    void sum() {
        const double *z = z_.data();
        double *y = y_.data(), *values = values_.data();
        const Index size = m_ * std::exchange(count_, 0);
        values_of(loss_, z, y, values, size);
#pragma omp simd
        for (Index e = 0; e < size; ++e) y[e] = z[e] * y[e] > 0 ? 0.0 : 1.0;  // NaN is a mistake
        for (Index c = 0; c < m_; ++c) {
            double losses = 0, mistakes = 0;
            for (Index k = 0, e = c; e < size; ++k, e += m_) losses += s_[k] * values[e], mistakes += s_[k] * y[e];
            losses_[c] += losses, mistakes_[c] += mistakes;
        }
        for (Index e = 0; each_ && e < size; e += m_) {
            each_ = std::copy(values + e, values + e + m_, each_);
            each_ = std::copy(y + e, y + e + m_, each_);
        }
    }

  private:
    static constexpr Index room = 64;
    const Loss &loss_;
    const Index m_;
    double *losses_, *mistakes_, *each_;
    std::vector<double> z_, y_, values_, s_;
    Index count_ = 0;
};

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

// A number that is known at compile time, or if it is 0 not until run time.
template <Index M>
struct Count {
    constexpr Count(Index) {}
    constexpr operator Index() const { return M; }
};
template <>
struct Count<0> {
    Index value;
    operator Index() const { return value; }
};

// M models with p = 2 and steps of one sample each, with averages if there are several; any of them if M = 0.
template <Index M, class Loss, class Matrix>
class PrimalGradient {
  public:
    PrimalGradient(const Loss &loss, const Matrix &rows, const double *y, const double *s, const GradientOptions &options, GradientState &state)
        : loss_(loss), rows_(rows), y_(y), s_(s), o_(options), state_(state), m_{options.models}, width_(rows.width), p2_(options.p == 2),
          bounded_(std::any_of(options.radius, options.radius + options.models, [](double radius) { return radius < infinity; })),
          v_{state.v, m_, (p2_ && state.averages ? 2 : 1) * m_}, w_{p2_ ? state.v : state.w, m_, v_.stride}, raw_(m_), held_(m_), moves_(v_.stride),
          squared_(m_), scale_(m_, 1.0), inverse_(m_), sizes_(m_), losses_(loss, m_, state.loss, state.mistakes),
          average_losses_(loss, m_, state.average_loss, state.average_mistakes, state.each), power_(options.p, options.radius, m_), entropic_(options.radius, m_) {
        if (state.squared) std::copy(state.squared, state.squared + m_, squared_.begin());
        else if (p2_ && bounded_) for_entries([&](Index j, Index c) { squared_[c] += v_.row(j)[c] * v_.row(j)[c]; });
    }

    // One step for each batch; the last one may be shorter.
    void pass(const Index *order, Index size) {
        std::vector<double> memory(std::min(o_.batch, size) * m_);
        rescale();
        for (Index c = 0; c < m_; ++c) inverse_[c] = 1 / state_.f[c];
        for (Index first = 0; first < size; first += batch()) {
            const Index count = M ? 1 : std::min(batch(), size - first);
            Numbers<M> slopes(memory), raw(raw_), sizes(sizes_);
            for (Index c = 0; c < m_; ++c) sizes[c] = 0;
            for (Index k = 0; k < count; ++k) {
                prefetch(order, first + k, size);
                evaluate(order[first + k], count, raw, &slopes[k * m_], sizes);
            }
            ++state_.t;
            for (Index k = 0; k < count; ++k) move(rows_.line(order[first + k]), count, raw, &slopes[k * m_]);
            settle(&slopes[0], count, sizes);
        }
        losses_.sum(), average_losses_.sum();
        if (state_.squared) std::copy(squared_.begin(), squared_.end(), state_.squared);
    }

  private:
    Index batch() const { return M ? 1 : o_.batch; }
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
    void products(const Line &x, const Strided &v, Numbers<M> &raw) const {
        dots(x, v, &raw[0]);
        for (Index c = 0; c < m_; ++c) raw[c] += o_.constant * v.row(width_)[c];
    }

    // Slopes of a sample over the size of the batch, for each model; losses and mistakes before the step.
    void evaluate(Index i, Index count, Numbers<M> &raw, double *slopes, Numbers<M> &sizes) {
        const auto x = rows_.line(i);
        const double weight = s_[i] / o_.W, share = weight / static_cast<double>(count), length = measure(x, raw);
        const auto [scores, targets] = losses_.next(weight);
        const double *scale = scale_.data(), *b = state_.b, y = y_[i];
#pragma omp simd
        for (Index c = 0; c < m_; ++c) scores[c] = scale[c] * raw[c] + b[c];
        for (Index c = 0; c < m_; ++c) targets[c] = target(y, c);
        slopes_of(loss_, scores, targets, slopes, m_);
#pragma omp simd
        for (Index c = 0; c < m_; ++c) {
            slopes[c] *= share;
            sizes[c] += std::fabs(slopes[c]) * length;
        }
        if (state_.averages && visits_++ % 4 == 0) evaluate_average(x, weight, y_[i], raw);
    }
    // The products of a row; returns |x|_2, at least |x|_q, and for p = 1 the largest entry.
    template <class Line>
    double measure(const Line &x, Numbers<M> &raw) const {
        const double own = o_.constant * o_.constant;
        if constexpr (M == 1 && requires { x.indices; }) {
            const auto [product, square] = w_.stride == 1 ? dot_and_square(x, w_.values) : dot_and_square(x, Every<2>{w_.values});
            raw[0] = product + o_.constant * w_.row(width_)[0];
            return std::sqrt(square + own);
        }
        if constexpr (M > 1) {
            const double square = dots_and_square<M>(x, w_.values, &raw[0]);
            for (Index c = 0; c < M; ++c) raw[c] += o_.constant * w_.row(width_)[c];
            return std::sqrt(square + own);
        }
        products(x, w_, raw);
        if (o_.p > 1) return std::sqrt(squared_norm(x) + own);
        double top = std::fabs(o_.constant);
        for (Index k = 0; k < x.size; ++k) top = std::max(top, std::fabs(static_cast<double>(x.value[k])));
        return top;
    }
    double target(double y, Index c) const { return o_.classes ? (y == o_.classes[c] ? 1.0 : -1.0) : y; }

    Strided held() const { return p2_ ? Strided{v_.values + m_, m_, v_.stride} : Strided{state_.held, m_, m_}; }

    template <class Line>
    void evaluate_average(const Line &x, double weight, double y, Numbers<M> &raw) {
        const double t = static_cast<double>(state_.t), time = std::max(t * (t + 1) / 2 + o_.offset * t, 1.0);
        Numbers<M> sums(held_);
        products(x, held(), sums);
        const auto [scores, targets] = average_losses_.next(weight);
        for (Index c = 0; c < m_; ++c) {
            scores[c] = ((p2_ ? (state_.total[c] * raw[c] - sums[c]) / o_.lam[c] : sums[c]) + state_.b_total[c]) / time;
            targets[c] = target(y, c);
            state_.average_weight[c] += weight;
        }
    }

    template <class Line>
    void move(const Line &x, Index count, Numbers<M> &raw, const double *slopes) {
        Numbers<M> moves(moves_);
        bool idle = true;
        for (Index c = 0; c < m_; ++c) {
            moves[c] = -slopes[c] * inverse_[c];
            idle &= slopes[c] == 0;
        }
        if (idle) return;
        if (p2_ && bounded_) {
            if (count > 1) products(x, w_, raw);  // other samples of the batch have moved v
            const double norm = squared_norm(x) + o_.constant * o_.constant;
            for (Index c = 0; c < m_; ++c) squared_[c] += moves[c] * (2 * raw[c] + moves[c] * norm);
        }
        const bool both = v_.stride > m_;
        double *last = v_.row(width_);
        for (Index c = 0; c < m_; ++c) {
            last[c] += moves[c] * o_.constant;
            if (both) last[m_ + c] += moves[c] * state_.total[c] * o_.constant;
        }
        if constexpr (M > 0) {
            std::array<double, M> alone;
            std::array<double, 2 * M> with_held;
            for (Index c = 0; c < M; ++c) with_held[c] = alone[c] = moves[c], with_held[M + c] = moves[c] * state_.total[c];
            if (both) add_to_each(x, with_held, v_.values);
            else add_to_each(x, alone, v_.values);
        } else {
            for (Index c = 0; both && c < m_; ++c) moves[m_ + c] = moves[c] * state_.total[c];
            add_to_many(x, moves.values, v_.values, v_.stride);
        }
    }

    // After a step: intercepts, projections, weights, averages.
    void settle(const double *slopes, Index count, Numbers<M> &sizes) {
        const double step = static_cast<double>(state_.t), now = time();
        double *sums = state_.slopes, *b = state_.b, *b_total = state_.b_total;
#pragma omp simd
        for (Index c = 0; c < m_; ++c) sums[c] += sizes[c] * sizes[c] / step;
        if (o_.intercept_step > 0) {
            const double rate = o_.intercept_step / std::sqrt(step), limit = o_.intercept_limit;
            for (Index c = 0; c < m_; ++c) {
                double slope = 0;
                for (Index k = 0; k < count; ++k) slope += slopes[k * m_ + c];
                b[c] -= std::min(std::max(rate * slope, -limit), limit);
            }
        }
#pragma omp simd
        for (Index c = 0; c < m_; ++c) b_total[c] += now * b[c];
        if (p2_) lengthen(now);
        if (!p2_) {
            const Index entries = width_ + (o_.constant != 0);
            if (o_.p > 1) power_.weights(state_.v, state_.w, entries, o_.lam, time());
            else entropic_.weights(state_.v, state_.w, entries, o_.lam, time());
            if (state_.averages)
                for (Index k = 0; k < (width_ + 1) * m_; ++k) state_.held[k] += time() * state_.w[k];
        }
        if (state_.drawn && state_.t == state_.draw) draw();
    }

    // The factors of v for p = 2.
    void lengthen(double now) {
        double *f = state_.f, *total = state_.total, *scale = scale_.data();
        const double *lam = o_.lam;
        if (!bounded_) {
#pragma omp simd
            for (Index c = 0; c < m_; ++c) total[c] += f[c], scale[c] = f[c] / (lam[c] * now);
            return;
        }
        for (Index c = 0; c < m_; ++c) {
            double factor = shortening(c);
            if (o_.eager) {
                f[c] *= factor, factor = 1;
                if (f[c] < 1e-3) fold(c);  // total v - held would cancel
                inverse_[c] = 1 / f[c];
            }
            total[c] += f[c] * factor;
            scale[c] = f[c] * factor / (lam[c] * now);
        }
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

    const Loss loss_;
    const Matrix &rows_;
    const double *y_, *s_;
    const GradientOptions &o_;
    GradientState &state_;
    [[no_unique_address]] const Count<M> m_;
    const Index width_;
    const bool p2_, bounded_;  // bounded_: whether a model has a radius
    const Strided v_, w_;      // w_: what scores are computed from, v or the weights
    Index visits_ = 0;
    std::vector<double> raw_, held_;  // products of a row
    std::vector<double> moves_;       // of v, and of held behind it
    std::vector<double> squared_, scale_, inverse_, sizes_;  // inverse_: 1 / f
    LossSums<Loss> losses_, average_losses_;
    PowerLink power_;
    EntropicLink entropic_;
};

}  // namespace fenchel
