// Contiguous copies of the columns of a dense matrix that were asked for, and their weighted Gram matrix.
#pragma once
#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include "linalg/lapack.hpp"
#include "linalg/storage.hpp"
#include "linalg/submatrix.hpp"

namespace fenchel {

// Columns are padded with zeros to a multiple of `lanes`, so that loops over them have no remainder.
constexpr Index lanes = 8;
inline Index padded(Index n) { return (n + lanes - 1) / lanes * lanes; }

inline double padded_dot(const double *x, const double *y, Index size) {
    double sum[lanes] = {};
    for (Index k = 0; k < size; k += lanes)
        for (Index l = 0; l < lanes; ++l) sum[l] += x[k + l] * y[k + l];
    return ((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7]));
}

class ColumnCache {
  public:
    // For d columns of n numbers; read(j, out) copies one.
    ColumnCache(Index n, Index d, std::function<void(Index, double *)> read, Syrk syrk)
        : size_(padded(n)), read_(std::move(read)), syrk_(syrk), place_(d, nullptr) {}

    const double *operator[](Index j) const { return place_[j]; }

    void keep(Index j) {
        if (place_[j]) return;
        constexpr Index many = 32;
        if (count_ % many == 0) memory_.emplace_back(many * size_, 0.0);
        double *x = memory_.back().data() + count_++ % many * size_;
        read_(j, x);
        place_[j] = x;
    }

    // X'diag(c)X - total mean mean' for some columns that are kept, and c >= 0. If c is that of the last call, the entries of the columns up to
    // the first that differs are used again.
    void gram(const std::vector<Index> &which, const std::vector<double> &c, double total, const std::vector<double> &mean, double *out) {
        const Index count = Index(which.size()), before = Index(set_.size());
        Index known = 0;
        while (known < std::min(count, before) && which[known] == set_[known]) ++known;
        if (c != weights_) known = 0;
        if (count - known >= enough_for_blas) {
            multiply(which, c, out);
            for (Index k = 0; k < count; ++k)
                for (Index l = 0; l <= k; ++l) out[l * count + k] -= total * mean[k] * mean[l];
        } else {
            for (Index l = 0; l < known; ++l) std::copy_n(last_.data() + l * before + l, known - l, out + l * count + l);
            scaled_.resize(size_);
            for (Index k = known; k < count; ++k) {
                for (Index i = 0; i < size_; ++i) scaled_[i] = c[i] * place_[which[k]][i];
                for (Index l = 0; l <= k; ++l) out[l * count + k] = padded_dot(scaled_.data(), place_[which[l]], size_) - total * mean[k] * mean[l];
            }
        }
        mirror(out, count);
        set_ = which;
        weights_ = c;
        last_.assign(out, out + count * count);
    }

  private:
    static constexpr Index enough_for_blas = 64;  // with fewer new columns a call takes longer than the sums

    // The lower triangle of X'diag(c)X.
    void multiply(const std::vector<Index> &which, const std::vector<double> &c, double *out) {
        char lower = 'L', transposed = 'T';
        int count = int(which.size()), size = int(size_);
        double one = 1, zero = 0;
        std::vector<double> root(c);
        for (double &x : root) x = std::sqrt(x);
        scaled_.resize(count * size_);
        for (Index k = 0; k < count; ++k)
            for (Index i = 0; i < size_; ++i) scaled_[k * size_ + i] = root[i] * place_[which[k]][i];
        syrk_.call(&lower, &transposed, &count, &size, &one, scaled_.data(), &size, &zero, out, &count);
    }

    Index size_, count_ = 0;
    std::function<void(Index, double *)> read_;
    Syrk syrk_;
    std::vector<std::vector<double>> memory_;
    std::vector<const double *> place_;
    std::vector<double> scaled_;
    std::vector<Index> set_;              // the columns,
    std::vector<double> weights_, last_;  // c and the result of the last call
};

}  // namespace fenchel
