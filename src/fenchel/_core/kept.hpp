// Columns of a dense matrix that are wanted again and again, copied one after the other as they are asked for.
#pragma once
#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "storage.hpp"

namespace fenchel {

// Columns of n numbers are followed by zeros up to a multiple of `lanes`: loops over them have no rest.
constexpr Index lanes = 8;
inline Index padded(Index n) { return (n + lanes - 1) / lanes * lanes; }

inline double padded_dot(const double *x, const double *y, Index size) {
    double sum[lanes] = {};
    for (Index k = 0; k < size; k += lanes)
        for (Index l = 0; l < lanes; ++l) sum[l] += x[k + l] * y[k + l];
    return ((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7]));
}

class KeptColumns {
  public:
    // Of d columns; read(j, out) copies one.
    KeptColumns(Index n, Index d, std::function<void(Index, double *)> read) : size_(padded(n)), read_(std::move(read)), place_(d, nullptr), scaled_(tile * size_) {}

    const double *operator[](Index j) const { return place_[j]; }

    void keep(Index j) {
        if (place_[j]) return;
        constexpr Index many = 32;
        if (count_ % many == 0) memory_.emplace_back(many * size_, 0.0);
        double *x = memory_.back().data() + count_++ % many * size_;
        read_(j, x);
        place_[j] = x;
    }

    // X'diag(c)X - total mean mean' for some columns that are kept; some at a time, so that each is read less often.
    void gram(const std::vector<Index> &which, const double *c, double total, const std::vector<double> &mean, double *out) {
        const Index count = Index(which.size());
        for (Index k = 0; k < count; k += tile) {
            const Index rows = std::min(tile, count - k);
            for (Index r = 0; r < rows; ++r)
                for (Index i = 0; i < size_; ++i) scaled_[r * size_ + i] = c[i] * place_[which[k + r]][i];
            for (Index l = 0; l < k + rows; ++l)
                for (Index r = 0; r < rows; ++r) {
                    const double product = padded_dot(scaled_.data() + r * size_, place_[which[l]], size_);
                    out[(k + r) * count + l] = out[l * count + k + r] = product - total * mean[k + r] * mean[l];
                }
        }
    }

  private:
    static constexpr Index tile = 4;

    Index size_, count_ = 0;
    std::function<void(Index, double *)> read_;
    std::vector<std::vector<double>> memory_;
    std::vector<const double *> place_;
    std::vector<double> scaled_;
};

}  // namespace fenchel
