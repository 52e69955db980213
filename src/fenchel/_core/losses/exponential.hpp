// exp, log and log1p without branches, for vectorised loops over samples.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

namespace fenchel {

// c0 + x (c1 + x (c2 + ...))
template <class... Rest>
inline double series(double x, double c, Rest... rest) {
    if constexpr (sizeof...(rest) == 0) return c;
    else return c + x * series(x, rest...);
}

// The same sum in a tree: sums of neighbours, (c0 + x c1) + x^2 (c2 + x c3) + ..., which need not wait for each other. Sooner done than
// a `series` on the path to a result, not with fewer operations.
template <std::size_t n>
inline double tree(double x, const std::array<double, n> &c) {
    if constexpr (n == 1) return c[0];
    else {
        std::array<double, (n + 1) / 2> sums;
        for (std::size_t k = 0; k < n / 2; ++k) sums[k] = c[2 * k] + x * c[2 * k + 1];
        if constexpr (n % 2 == 1) sums[n / 2] = c[n - 1];
        return tree(x * x, sums);
    }
}

// exp(x) for |x| <= 708, to a few units in the last place; NaN for NaN.
//
// x = k log 2 + r with |r| <= log(2) / 2; adding 1.5 2^52 rounds k to the lowest bits of a double, which become an exponent.
inline double exp_in_range(double x) {
    constexpr double shift = 6755399441055744.0;
    const double shifted = x * 1.4426950408889634 + shift, k = shifted - shift;
    const double r = (x - k * 0.6931471803691238) - k * 1.9082149292705877e-10;
    const double sum = tree(r, std::array{1.0, 1.0, 1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040, 1.0 / 40320, 1.0 / 362880, 1.0 / 3628800,
                              1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800});
    const auto bits = (std::bit_cast<std::uint64_t>(shifted) << 52) + (std::uint64_t{1023} << 52);
    return sum * std::bit_cast<double>(bits);
}

// exp(x) for x <= 0; exp(-708) below -708.
inline double exp_nonpositive(double x) { return exp_in_range(std::max(x, -708.0)); }

// log(1 + e) for -1/2 <= e <= 1: twice the series of artanh(e / (2 + e)), whose argument is at most 1/3.
inline double log1p_of_fraction(double e) {
    const double s = e / (2.0 + e), square = s * s;
    return 2.0 * s *
           series(square, 1.0, 1.0 / 3, 1.0 / 5, 1.0 / 7, 1.0 / 9, 1.0 / 11, 1.0 / 13, 1.0 / 15, 1.0 / 17, 1.0 / 19, 1.0 / 21, 1.0 / 23, 1.0 / 25, 1.0 / 27,
                  1.0 / 29, 1.0 / 31, 1.0 / 33);
}

// log(x) for a positive normal x: x = 2^k m with sqrt(1/2) <= m < sqrt(2), and the series of artanh((m - 1) / (m + 1)).
inline double log_positive(double x) {
    constexpr std::uint64_t root_half = 0x3fe6a09e667f3bcd, one = 0x3ff0000000000000, fraction = 0x000fffffffffffff;
    const std::uint64_t raised = std::bit_cast<std::uint64_t>(x) + (one - root_half);
    // an exponent of at most eleven bits becomes a double in the lowest bits of 2^52
    const double k = std::bit_cast<double>((raised >> 52) | 0x4330000000000000) - (4503599627370496.0 + 1023.0);
    const double m = std::bit_cast<double>((raised & fraction) + root_half);
    const double s = (m - 1.0) / (m + 1.0), square = s * s;
    const double sum = series(square, 1.0, 1.0 / 3, 1.0 / 5, 1.0 / 7, 1.0 / 9, 1.0 / 11, 1.0 / 13, 1.0 / 15, 1.0 / 17, 1.0 / 19, 1.0 / 21);
    return k * 0.6931471805599453 + 2.0 * s * sum;
}

}  // namespace fenchel
