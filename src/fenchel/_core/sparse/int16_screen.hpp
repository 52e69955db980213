// A dense matrix in sixteen bits, for a quick look at which columns can matter; many problems on the same samples may share it.
//
// Let samples have shares r_i, and S_j = sqrt(sum_i r_i x_ij^2). For any q the product v_j = sum_i q_i x_ij is S_j |q / sqrt(r)| times that of
// two vectors no longer than 1, sqrt(r_i) x_ij / S_j and q_i / sqrt(r_i) / |q / sqrt(r)|. With entries rounded to multiples of 1 / one, towards
// zero, each of them is off by sqrt(n) / one at most, so that their product is off by twice that, where n counts the q_i that are not zero;
// and its sum in integers does not overflow.
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
// Two sixteen-bit numbers in one.
using Pair = std::int32_t;

// An entry of a unit vector; anything between -one and one where there is no number.
inline std::int32_t in_short(double u) {
    const double x = u * one, low = x < one ? x : one;
    return static_cast<std::int32_t>(low > -one ? low : -one);
}
inline Pair pair_of(std::int32_t first, std::int32_t second) { return (first & 0xffff) | static_cast<Pair>(static_cast<std::uint32_t>(second) << 16); }

// Blocks of `wide` columns; in a block one pair of samples after the other, and in a pair one column after the other.
constexpr Index wide = 8;

// A vector over the samples, for products with all columns.
struct Direction {
    std::vector<Pair> pairs;
    double size = 0;   // |q / sqrt(r)|, from above
    double rough = 0;  // what products of unit vectors may be off by
};

// The products of all columns of a block with a vector.
inline void block_dots(const Pair *x, const Direction &y, std::int32_t *sum) {
    const Index count = Index(y.pairs.size());
#if defined(__AVX2__)
    __m256i total = _mm256_setzero_si256();
    for (Index k = 0; k < count; ++k) {
        const __m256i entries = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(x + wide * k));
        total = _mm256_add_epi32(total, _mm256_madd_epi16(entries, _mm256_set1_epi32(y.pairs[k])));
    }
    _mm256_storeu_si256(reinterpret_cast<__m256i *>(sum), total);
#else
    std::fill(sum, sum + wide, 0);
    for (Index k = 0; k < count; ++k)
        for (Index c = 0; c < wide; ++c) {
            const Pair pair = x[wide * k + c], entry = y.pairs[k];
            sum[c] += std::int32_t(std::int16_t(pair)) * std::int16_t(entry) + (pair >> 16) * (entry >> 16);
        }
#endif
}

class ShortColumns {
  public:
    Index n, count;

    std::vector<double> length;  // S_j, from above

    // visit(i, from, to, f) calls f(j, x_ij) for columns j from `from` to `to`.
    template <class Visit>
    ShortColumns(Index n, Index d, const double *r, const Visit &visit)
        : n(n),
          count(d),
          length(d, 0.0),
          pairs_((n + 1) / 2),
          inverse_(blocks() * wide, largest_inverse),
          entries_(blocks() * pairs_ * wide),
          root_(2 * pairs_, 0.0) {
        for (Index i = 0; i < n; ++i) {
            root_[i] = std::sqrt(r[i]);
            visit(i, 0, d, [square = length.data(), w = r[i]](Index j, double x) { square[j] += w * x * x; });
        }
        for (double &size : length) size = std::sqrt(size) * (1 + 1e-9);
        widest_ = *std::max_element(length.begin(), length.end());
        std::vector<double> scale(blocks() * wide, 0.0);
        for (Index j = 0; j < d; ++j) {
            inverse_[j] = static_cast<float>(std::min(widest_ / length[j], largest_inverse));
            scale[j] = length[j] > 0 ? 1 / length[j] : 0.0;
        }
        for (Index from = 0; from < d; from += tile) fill(from, std::min(from + tile, d), scale.data(), visit);
    }

    // The direction of a vector q that is zero where r is; v_j may be off by `doubt` S_j beside.
    Direction direction(const double *q, double doubt) const {
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
        for (Index k = 0; k < pairs_; ++k) out.pairs[k] = pair_of(in_short(entry(2 * k) * inverse), in_short(entry(2 * k + 1) * inverse));
        out.rough = 2 * std::sqrt(double(alive)) / one * (1 + 1e-3) + doubt * inverse;
        return out;
    }

    // About the largest |v_j|, from below.
    double largest(const Direction &q) const {
        double most = 0;
        for_blocks(q, [&](Index from, const std::int32_t *sum) {
            for (Index c = 0; c < wide; ++c) most = std::max(most, std::abs(sum[c]) / double(inverse_[from + c]));
        });
        return q.size * widest_ * std::max(0.0, most / (one * one) - q.rough);
    }

    // Calls f(j) for columns, in order, among them every one with |v_j| above a limit, or with no number there.
    template <class F>
    void above(const Direction &q, double limit, F &&f) const {
        const double share = limit / (q.size * widest_);
        const float slope = static_cast<float>(share * one * one * (1 - 1e-5)), less = static_cast<float>(q.rough * one * one);
        for_blocks(q, [&](Index from, const std::int32_t *sum) {
            std::int32_t any = 0;
            for (Index c = 0; c < wide; ++c) any |= !(static_cast<float>(std::abs(sum[c])) <= slope * inverse_[from + c] - less);
            if (!any) return;
            for (Index c = 0; c < wide && from + c < count; ++c)
                if (!(static_cast<float>(std::abs(sum[c])) <= slope * inverse_[from + c] - less)) f(from + c);
        });
    }

  private:
    static constexpr double largest_inverse = 1e30;
    static constexpr Index tile = 512;

    Index blocks() const { return (count + wide - 1) / wide; }

    // The entries of some columns, a multiple of `wide` of them unless they are the last: as many as fit into the first cache, pair by pair.
    template <class Visit>
    void fill(Index from, Index to, const double *scale, const Visit &visit) {
        std::int32_t row[2][tile] = {};
        double x[tile];
        for (Index i = 0; i < 2 * pairs_; ++i) {
            if (i < n) visit(i, from, to, [&x, from](Index j, double entry) { x[j - from] = entry; });
            const double root = root_[i];
            if (i == n) std::fill(x, x + tile, 0.0);
#pragma omp simd
            for (Index c = 0; c < to - from; ++c) row[i % 2][c] = in_short(root * scale[from + c] * x[c]);
            if (i % 2 == 0) continue;
            for (Index c = 0; c < to - from; c += wide) {
                Pair *out = entries_.data() + (from + c) * pairs_ + i / 2 * wide;
                for (Index k = 0; k < wide; ++k) out[k] = pair_of(row[0][c + k], row[1][c + k]);
            }
        }
    }

    template <class F>
    void for_blocks(const Direction &q, F &&f) const {
        std::int32_t sum[wide];
        for (Index block = 0; block < blocks(); ++block) {
            block_dots(entries_.data() + block * pairs_ * wide, q, sum);
            f(block * wide, sum);
        }
    }

    Index pairs_;
    std::vector<float> inverse_;  // the widest column's S over that of each
    std::vector<Pair> entries_;
    std::vector<double> root_;
    double widest_ = 0;
};

}  // namespace fenchel
