// A dense matrix in sixteen bits, for a quick look at which columns can matter.
//
// With shares p_i, S_j = sqrt(sum_i p_i x_ij^2) and |a|_p = sqrt(sum_i p_i a_i^2), the product v_j = sum_i p_i x_ij a_i is S_j |a|_p times that of
// two unit vectors, sqrt(p_i) x_ij / S_j and sqrt(p_i) a_i / |a|_p. With entries rounded to multiples of 1 / one, towards zero, each of them
// is off by sqrt(n) / one at most, so that their product is off by twice that; and its sum in integers does not overflow.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <vector>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "storage.hpp"

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

// The products of all columns of a block with a vector.
inline void block_dots(const Pair *x, const Pair *y, Index pairs, std::int32_t *sum) {
#if defined(__AVX2__)
    __m256i total = _mm256_setzero_si256();
    for (Index k = 0; k < pairs; ++k) {
        const __m256i entries = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(x + wide * k));
        total = _mm256_add_epi32(total, _mm256_madd_epi16(entries, _mm256_set1_epi32(y[k])));
    }
    _mm256_storeu_si256(reinterpret_cast<__m256i *>(sum), total);
#else
    std::fill(sum, sum + wide, 0);
    for (Index k = 0; k < pairs; ++k)
        for (Index c = 0; c < wide; ++c) {
            const Pair pair = x[wide * k + c];
            sum[c] += std::int32_t(std::int16_t(pair)) * std::int16_t(y[k]) + (pair >> 16) * (y[k] >> 16);
        }
#endif
}

class ShortColumns {
  public:
    Index count;

    std::vector<double> length;  // S_j, from above

    // visit(i, from, to, f) calls f(j, x_ij) for columns j from `from` to `to`.
    template <class Visit>
    ShortColumns(Index n, Index d, const double *p, const Visit &visit)
        : count(d), length(d, 0.0), n_(n), pairs_((n + 1) / 2), inverse_(blocks() * wide, largest_inverse), entries_(blocks() * pairs_ * wide), direction_(pairs_),
          p_(p, p + n), root_(2 * pairs_, 0.0) {
        for (Index i = 0; i < n; ++i) {
            root_[i] = std::sqrt(p[i]);
            visit(i, 0, d, [square = length.data(), w = p[i]](Index j, double x) { square[j] += w * x * x; });
        }
        for (double &size : length) size = std::sqrt(size) * (1 + 1e-9);
        widest_ = *std::max_element(length.begin(), length.end());
        std::vector<double> scale(blocks() * wide, 0.0);
        for (Index j = 0; j < d; ++j) {
            inverse_[j] = static_cast<float>(std::min(widest_ / length[j], largest_inverse));
            scale[j] = length[j] > 0 ? 1 / length[j] : 0.0;
        }
        for (Index block = 0; block < blocks(); ++block) fill(block, scale.data(), visit);
    }

    // About the largest |v_j|, from below.
    double largest(const double *a) {
        const double size = turn_to(a);
        double most = 0;
        for_blocks([&](Index from, const std::int32_t *sum) {
            for (Index c = 0; c < wide; ++c) most = std::max(most, std::abs(sum[c]) / double(inverse_[from + c]));
        });
        return size * widest_ * std::max(0.0, most / (one * one) - rough());
    }

    // Calls f(j) for columns, in order, among them every one with |v_j| above a limit, or with no number there.
    template <class F>
    void above(const double *a, double limit, F &&f) {
        const double size = turn_to(a), share = limit / (size * widest_);
        const float slope = static_cast<float>(share * one * one * (1 - 1e-5)), less = static_cast<float>(rough() * one * one);
        for_blocks([&](Index from, const std::int32_t *sum) {
            std::int32_t any = 0;
            for (Index c = 0; c < wide; ++c) any |= !(static_cast<float>(std::abs(sum[c])) <= slope * inverse_[from + c] - less);
            if (!any) return;
            for (Index c = 0; c < wide && from + c < count; ++c)
                if (!(static_cast<float>(std::abs(sum[c])) <= slope * inverse_[from + c] - less)) f(from + c);
        });
    }

  private:
    static constexpr double largest_inverse = 1e30;

    Index blocks() const { return (count + wide - 1) / wide; }
    double rough() const { return 2 * std::sqrt(double(n_)) / one * (1 + 1e-3); }

    template <class Visit>
    void fill(Index block, const double *inverse, const Visit &visit) {
        Pair *out = entries_.data() + block * pairs_ * wide;
        const Index from = block * wide;
        std::int32_t row[2][wide];
        for (Index i = 0; i < 2 * pairs_; ++i) {
            double x[wide] = {};
            const auto take = [&x, from](Index j, double entry) { x[j - from] = entry; };
            if (i < n_) from + wide <= count ? visit(i, from, from + wide, take) : visit(i, from, count, take);
#pragma omp simd
            for (Index c = 0; c < wide; ++c) row[i % 2][c] = in_short(root_[i] * inverse[from + c] * x[c]);
            if (i % 2 == 0) continue;
            for (Index c = 0; c < wide; ++c) out[c] = pair_of(row[0][c], row[1][c]);
            out += wide;
        }
    }

    // The direction of multipliers, in short; returns |a|_p, from above.
    double turn_to(const double *a) {
        double square = 0;
        for (Index i = 0; i < n_; ++i) square += p_[i] * a[i] * a[i];
        const double size = std::sqrt(square) * (1 + 1e-9), inverse = size > 0 ? 1 / size : 0.0;
        const auto entry = [&](Index i) { return i < n_ ? in_short(root_[i] * a[i] * inverse) : 0; };
        for (Index k = 0; k < pairs_; ++k) direction_[k] = pair_of(entry(2 * k), entry(2 * k + 1));
        return size;
    }

    template <class F>
    void for_blocks(F &&f) const {
        std::int32_t sum[wide];
        for (Index block = 0; block < blocks(); ++block) {
            block_dots(entries_.data() + block * pairs_ * wide, direction_.data(), pairs_, sum);
            f(block * wide, sum);
        }
    }

    Index n_, pairs_;
    std::vector<float> inverse_;  // the widest column's S over that of each
    std::vector<Pair> entries_, direction_;
    std::vector<double> p_, root_;
    double widest_ = 0;
};

}  // namespace fenchel
