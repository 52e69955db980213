// Products of a matrix with k vectors at once, and dual ascent over blocks of k multipliers.
//
// k vectors are stored side by side, a row of `stride` numbers (k, then zeros up to a multiple of four) for each coordinate: an entry
// of the matrix is multiplied with contiguous numbers.
#pragma once
#include "ascent/epoch.hpp"
#include "ascent/threads.hpp"
#include "linalg/products.hpp"
#include "losses/multiclass.hpp"

namespace fenchel {

// z[c] = sum_k x_k w[index(k)][c] for C neighbouring columns, in two independent chains of additions.
template <int C, bool Soft, class Line>
void dot_columns(const Line &x, const double *w, Index stride, double threshold, double *z) {
    double even[C] = {}, odd[C] = {};
    const auto accumulate = [&](Index k, double *sum) {
        const double value = static_cast<double>(x.value[k]);
        if (value == 0) return;  // dense images and counts are mostly zeros: one test saves C products
        const double *row = w + x.index(k) * stride;
#pragma omp simd
        for (int c = 0; c < C; ++c) sum[c] += value * (Soft ? soft(row[c], threshold) : row[c]);
    };
    Index k = 0;
    for (; k + 1 < x.size; k += 2) {
        accumulate(k, even);
        accumulate(k + 1, odd);
    }
    if (k < x.size) accumulate(k, even);
    for (int c = 0; c < C; ++c) z[c] = even[c] + odd[c];
}

template <bool Soft, class Line>
void dot_block(const Line &x, const double *w, Index stride, double threshold, double *z) {
    Index c = 0;
    for (; c + 16 <= stride; c += 16) dot_columns<16, Soft>(x, w + c, stride, threshold, z + c);
    for (; c + 8 <= stride; c += 8) dot_columns<8, Soft>(x, w + c, stride, threshold, z + c);
    for (; c < stride; c += 4) dot_columns<4, Soft>(x, w + c, stride, threshold, z + c);
}

// w[index(k)] += x_k a for the block a.
template <class Line>
void add_block(const Line &x, const double *a, Index stride, double *w) {
    for (Index k = 0; k < x.size; ++k) {
        const double value = static_cast<double>(x.value[k]);
        if (value == 0) continue;
        double *row = w + x.index(k) * stride;
#pragma omp simd
        for (Index c = 0; c < stride; ++c) row[c] += value * a[c];
    }
}

// out[i] = line_i w, a block for each line. Returns the depth.
template <class Matrix>
Index gather_blocks(const Matrix &A, const double *w, Index stride, double *out, Index threads) {
    parallel(threads, [&](Index part) {
        const Index stop = A.split(part + 1, threads);
        for (Index i = A.split(part, threads); i < stop; ++i) dot_block<false>(A.line(i), w, stride, 0, out + i * stride);
    });
    return A.longest_line() + 1;
}

// out = sum_i line_i' a_i for blocks a_i; partial sums keep the depth, and with it the rounding bound, small. Returns the depth.
template <class Matrix>
Index scatter_blocks(const Matrix &A, const double *a, Index stride, double *out, Index threads) {
    const Index size = A.width * stride;
    const Index mean_line = std::max<Index>(1, A.entries() / std::max<Index>(1, A.lines));
    const Index block = std::max<Index>(1024, 16 * A.width / mean_line);
    std::vector<std::vector<double>> sums(threads);
    parallel(threads, [&](Index part) {
        auto &total = sums[part];
        total.assign(size, 0.0);
        const Index start = A.split(part, threads), stop = A.split(part + 1, threads);
        std::vector<double> partial(stop - start > block ? size : 0);
        for (Index i = start; i < stop; i += block) {
            double *sum = partial.empty() ? total.data() : partial.data();
            for (Index row = i; row < std::min(i + block, stop); ++row) add_block(A.line(row), a + row * stride, stride, sum);
            if (partial.empty()) continue;
            for (Index j = 0; j < size; ++j) total[j] += partial[j];
            std::fill(partial.begin(), partial.end(), 0.0);
        }
    });
    std::fill(out, out + size, 0.0);
    for (const auto &total : sums)
        for (Index j = 0; j < size; ++j) out[j] += total[j];
    return std::min(A.lines, block) + A.lines / block + threads + 2;
}

struct BlockSamples {
    const Index *y;
    const double *s, *squared_norm;
};

struct BlockAscent {
    Index classes, stride;
    double mu, threshold;  // as in dual_ascent.hpp
    double inverse_rho, W;
    double margin;
    Index measured;                   // stride of the measured samples
    double stretch = 1, damping = 1;  // as in threads.hpp
};

// Memory for scores and the change of a block.
struct BlockMemory {
    Workspace step;
    std::vector<double> z, change;
    explicit BlockMemory(const BlockAscent &p) : step(p.classes), z(p.stride), change(p.stride, 0.0) {}
};

// One step for each sample in `order`: alpha (lines x classes) and u = v / mu (width x stride) change in place, and so do the
// intercepts b = b0 + inverse_rho sum_i s_i alpha_i / W, a row after u. Samples whose block would stay the same for scores within
// `margin` are dropped from the order, which is compacted in place; an infinite margin drops none.
template <bool Soft, class Loss, class Matrix>
Epoch ascend_blocks(const Loss &loss, const Matrix &rows, const BlockSamples &data, Index *order, Index steps, double *alpha, double *u, const BlockAscent &p,
                    BlockMemory &memory) {
    constexpr Index ahead = 4;
    const Index k = p.classes;
    Epoch sums;
    Estimate estimate(p.measured);
    double *next = memory.step.p.data(), *z = memory.z.data(), *change = memory.change.data(), *b = u + rows.width * p.stride;
    for (Index step = 0; step < steps; ++step) {
        if (step + ahead < steps) rows.prefetch(order[step + ahead]);
        const Index i = order[step], y = data.y[i];
        const double s = data.s[i];
        if (s == 0) continue;
        const auto x = rows.line(i);
        double *a = alpha + i * k;
        const double weight = s / p.W, q = p.damping * weight * (data.squared_norm[i] / p.mu + p.inverse_rho);
        dot_block<Soft>(x, u, p.stride, p.threshold, z);
        for (Index j = 0; j < k; ++j) {
            z[j] += b[j];
            next[j] = -a[j];
        }
        next[y] = std::max(0.0, 1 - a[y]);
        if (estimate.due(step, s)) {
            const auto [maximum, own] = loss.level(next, z, y, k);
            sums.loss += s * (maximum - z[y]), sums.gap += s * (maximum - own);
        }
        loss.dual_step(next, z, q, y, k, memory.step);
        next[y] = 0;
        double rest = 0, move = 0;
        for (Index j = 0; j < k; ++j) rest += next[j];
        next[y] = -std::min(rest, 1.0);  // alpha_y = 1 - p_y from the other entries, accurate when it is small
        for (Index j = 0; j < k; ++j) {
            const double d = -next[j] - a[j];
            move = std::max(move, std::fabs(d));
            a[j] = -next[j];
            b[j] += p.stretch * weight * d * p.inverse_rho;
            change[j] = p.stretch * weight * d / p.mu;
        }
        sums.move = std::max(sums.move, q * move);
        if (move > 0) add_block(x, change, p.stride, u), ++sums.moves;
        if (move > 0 || !(p.margin < infinity && memory.step.lead >= p.margin)) order[sums.kept++] = i;
    }
    return estimate.scaled(sums);
}

// The same in threads.
template <bool Soft, class Loss, class Matrix>
std::optional<Epoch> ascend_blocks_in_threads(const Loss &loss, const Matrix &rows, const BlockSamples &data, Index *order, Index steps, double *alpha,
                                              double *u, BlockAscent p, const Threads &threads) {
    p.stretch = threads.stretch(), p.damping = threads.damping();
    Buffer buffer;
    std::vector<BlockMemory> memory(threads.count, BlockMemory(p));
    return epoch_in_threads(threads, order, steps, u, (rows.width + 1) * p.stride, buffer, [&](Index part, Index *mine, Index size, double *copy) {
        return ascend_blocks<Soft>(loss, rows, data, mine, size, alpha, copy, p, memory[part]);
    });
}

}  // namespace fenchel
