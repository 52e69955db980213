// A dense matrix in sixteen bits, to find the columns whose |v_j| may exceed a limit; problems on the same samples may share it.
//
// With sample weights r_i let S_j = sqrt(sum_i r_i x_ij^2). For any q, v_j = sum_i q_i x_ij = S_j |q / sqrt(r)| a.b, where
// a_i = sqrt(r_i) x_ij / S_j and b_i = q_i / sqrt(r_i) / |q / sqrt(r)| are no longer than 1. Rounded towards zero to multiples a', b' of
// 1 / one they are no longer either, and a.b - a'.b' = (a - a').b + a'.(b - b') is at most 2 sqrt(n) / one, where n counts the q_i that are
// not zero. The integer sum one^2 a'.b' and its partial sums are at most one^2 < 2^31, by Cauchy and Schwarz.
//
// A column is skipped only if one^2 |a'.b'| <= one^2 (limit / (S_j |q / sqrt(r)|) - rough), so that |v_j| <= limit, in exact arithmetic and
// for the entries x_ij as they are given. Rounding here is covered by the factors 1 + 1e-9 on S_j and |q / sqrt(r)| (sums of up to 1e6 squares),
// 1 + 1e-3 on rough (entries of a and b, and `extra`), and 1 - 1e-5 on the limit (six operations in float32). Squares must not underflow:
// the caller sees to it that data is of moderate size.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <vector>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "linalg/storage.hpp"

namespace fenchel {

constexpr double one = 32767;
// Two sixteen-bit numbers.
using Pair = std::int32_t;

// An entry of a unit vector, rounded towards zero; any number between -one and one for a NaN.
inline std::int32_t to_int16(double u) {
    const double x = u * one, low = x < one ? x : one;
    return static_cast<std::int32_t>(low > -one ? low : -one);
}
inline Pair pair_of(std::int32_t first, std::int32_t second) { return (first & 0xffff) | static_cast<Pair>(static_cast<std::uint32_t>(second) << 16); }

// Entries are stored by block of so many columns, then by pair of samples, then by column.
constexpr Index block_columns = 8;

// A vector over the samples, for products with all columns.
struct Direction {
    std::vector<Pair> pairs;
    double size = 0;   // upper bound on |q / sqrt(r)|
    double rough = 0;  // bound on the error of products of unit vectors
};

// The products of all columns of a block with a vector.
inline void block_dots(const Pair *x, const Direction &y, std::int32_t *sum) {
    const Index count = Index(y.pairs.size());
#if defined(__AVX2__)
    __m256i total = _mm256_setzero_si256();
    for (Index k = 0; k < count; ++k) {
        const __m256i entries = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(x + block_columns * k));
        total = _mm256_add_epi32(total, _mm256_madd_epi16(entries, _mm256_set1_epi32(y.pairs[k])));
    }
    _mm256_storeu_si256(reinterpret_cast<__m256i *>(sum), total);
#else
    std::fill(sum, sum + block_columns, 0);
    for (Index k = 0; k < count; ++k)
        for (Index c = 0; c < block_columns; ++c) {
            const Pair pair = x[block_columns * k + c], entry = y.pairs[k];
            sum[c] += std::int32_t(std::int16_t(pair)) * std::int16_t(entry) + (pair >> 16) * (entry >> 16);
        }
#endif
}

class Int16Screen {
  public:
    Index n, count;

    std::vector<double> length;  // upper bounds on S_j

    // visit(i, from, to, f) calls f(j, x_ij) for columns j from `from` to `to`.
    template <class Visit>
    Int16Screen(Index n, Index d, const double *r, const Visit &visit)
        : n(n), count(d), length(d, 0.0), pairs_((n + 1) / 2), inverse_(blocks() * block_columns, largest_inverse), entries_(blocks() * pairs_ * block_columns),
          root_(2 * pairs_, 0.0) {
        for (Index i = 0; i < n; ++i) root_[i] = std::sqrt(r[i]);
        for (Index from = 0; from < d; from += tile) {
            const Index to = std::min(from + tile, d);
            measure(from, to, r, visit);
            fill(from, to, visit);
        }
        largest_length_ = *std::max_element(length.begin(), length.end());
        for (Index j = 0; j < d; ++j) inverse_[j] = static_cast<float>(std::min(largest_length_ / length[j], largest_inverse));
    }

    // The direction of a vector q that is zero where r is. The v_j that are asked for may differ by `extra` S_j from the screen's.
    Direction direction(const double *q, double extra) const {
        Direction out;
        out.pairs.resize(pairs_);
        double square = 0;
        Index alive = 0;
        const auto entry = [&](Index i) { return i < n && q[i] != 0 ? q[i] / root_[i] : 0.0; };
        for (Index i = 0; i < n; ++i) {
            square += entry(i) * entry(i);
            alive += q[i] != 0;
        }
        out.size = std::sqrt(square) * (1 + 1e-9);
        const double inverse = out.size > 0 ? 1 / out.size : 0.0;
        for (Index k = 0; k < pairs_; ++k) out.pairs[k] = pair_of(to_int16(entry(2 * k) * inverse), to_int16(entry(2 * k + 1) * inverse));
        out.rough = 2 * std::sqrt(double(alive)) / one * (1 + 1e-3) + extra * inverse;
        return out;
    }

    // A lower bound on the largest |v_j|, up to rounding.
    double largest(const Direction &q) const {
        double most = 0;
        for_blocks(q, [&](Index from, const std::int32_t *sum) {
            for (Index c = 0; c < block_columns; ++c) most = std::max(most, std::abs(sum[c]) / double(inverse_[from + c]));
        });
        return q.size * largest_length_ * std::max(0.0, most / (one * one) - q.rough);
    }

    // Calls f(j) for columns in order, among them every one with |v_j| > limit or NaN.
    template <class F>
    void above(const Direction &q, double limit, F &&f) const {
        const float slope = static_cast<float>(limit / (q.size * largest_length_) * one * one * (1 - 1e-5)), less = static_cast<float>(q.rough * one * one);
        const auto exceeds = [&](Index j, std::int32_t sum) { return !(static_cast<float>(std::abs(sum)) <= slope * inverse_[j] - less); };
        for_blocks(q, [&](Index from, const std::int32_t *sum) {
            std::int32_t any = 0;
            for (Index c = 0; c < block_columns; ++c) any |= exceeds(from + c, sum[c]);
            if (!any) return;
            for (Index c = 0; c < block_columns && from + c < count; ++c)
                if (exceeds(from + c, sum[c])) f(from + c);
        });
    }

  private:
    static constexpr double largest_inverse = 1e30;
    static constexpr Index tile = 64;  // columns at a time, whose entries stay in the cache for a few hundred samples
    static_assert(tile % block_columns == 0);

    Index blocks() const { return (count + block_columns - 1) / block_columns; }

    // S_j of a tile of columns.
    template <class Visit>
    void measure(Index from, Index to, const double *r, const Visit &visit) {
        double square[tile] = {};
        for (Index i = 0; i < n; ++i) visit(i, from, to, [&square, from, w = r[i]](Index j, double x) { square[j - from] += w * x * x; });
        for (Index j = from; j < to; ++j) length[j] = std::sqrt(square[j - from]) * (1 + 1e-9);
    }

    // The entries of a tile of columns, pair by pair.
    template <class Visit>
    void fill(Index from, Index to, const Visit &visit) {
        std::int32_t row[2][tile] = {};
        double scale[tile];
        for (Index j = from; j < to; ++j) scale[j - from] = length[j] > 0 ? 1 / length[j] : 0.0;
        for (Index i = 0; i < 2 * pairs_; ++i) {
            std::int32_t *line = row[i % 2];
            if (i < n) visit(i, from, to, [&, root = root_[i]](Index j, double x) { line[j - from] = to_int16(root * scale[j - from] * x); });
            else std::fill(line, line + tile, 0);
            if (i % 2 == 0) continue;
            for (Index c = 0; c < to - from; c += block_columns) {
                Pair *out = entries_.data() + (from + c) * pairs_ + i / 2 * block_columns;
                for (Index k = 0; k < block_columns; ++k) out[k] = pair_of(row[0][c + k], row[1][c + k]);
            }
        }
    }

    template <class F>
    void for_blocks(const Direction &q, F &&f) const {
        std::int32_t sum[block_columns];
        for (Index b = 0; b < blocks(); ++b) {
            block_dots(entries_.data() + b * pairs_ * block_columns, q, sum);
            f(b * block_columns, sum);
        }
    }

    Index pairs_;
    std::vector<float> inverse_;  // the largest S over that of each column
    std::vector<Pair> entries_;
    std::vector<double> root_;
    double largest_length_ = 0;
};

}  // namespace fenchel
