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
        : size_(padded(n)), read_(std::move(read)), syrk_(syrk), place_(d, nullptr), where_(d, -1) {}

    const double *operator[](Index j) const { return place_[j]; }

    void keep(Index j) {
        if (place_[j]) return;
        constexpr Index many = 32;
        if (count_ % many == 0) memory_.emplace_back(many * size_, 0.0);
        double *x = memory_.back().data() + count_++ % many * size_;
        read_(j, x);
        place_[j] = x;
    }

    // X'diag(c)X - total mean mean' for some columns that are kept, and c >= 0; entries of the last call are used again if c is the same.
    void gram(const std::vector<Index> &which, const std::vector<double> &c, double total, const std::vector<double> &mean, double *out) {
        const Index count = Index(which.size());
        old_.resize(count);
        for (Index k = 0; k < count; ++k) old_[k] = where_[which[k]];
        const Index known = count - std::count(old_.begin(), old_.end(), Index(-1));
        if (c == weights_ && 4 * known >= 3 * count) extend(which, total, mean, out);
        else compute(which, c, total, mean, out);
        mirror(out, count);
        for (const Index j : set_) where_[j] = -1;
        for (Index k = 0; k < count; ++k) where_[which[k]] = k;
        set_ = which;
        weights_ = c;
        last_.assign(out, out + count * count);
    }

  private:
    static constexpr Index enough_for_blas = 64;  // with fewer columns a call takes longer than the sums

    // Computes the lower triangle.
    void compute(const std::vector<Index> &which, const std::vector<double> &c, double total, const std::vector<double> &mean, double *out) {
        const Index count = Index(which.size());
        scaled_.resize(count * size_);
        root_.resize(size_);
        for (Index i = 0; i < size_; ++i) root_[i] = std::sqrt(c[i]);
        for (Index k = 0; k < count; ++k)
            for (Index i = 0; i < size_; ++i) scaled_[k * size_ + i] = root_[i] * place_[which[k]][i];
        if (count < enough_for_blas) {
            for (Index k = 0; k < count; ++k)
                for (Index l = 0; l <= k; ++l) out[l * count + k] = padded_dot(scaled_.data() + k * size_, scaled_.data() + l * size_, size_);
        } else {
            char lower = 'L', transposed = 'T';
            int n = int(count), k = int(size_);
            double one = 1, zero = 0;
            syrk_.call(&lower, &transposed, &n, &k, &one, scaled_.data(), &k, &zero, out, &n);
        }
        for (Index k = 0; k < count; ++k)
            for (Index l = 0; l <= k; ++l) out[l * count + k] -= total * mean[k] * mean[l];
    }

    // The same, with the entries of the last call.
    void extend(const std::vector<Index> &which, double total, const std::vector<double> &mean, double *out) {
        const Index count = Index(which.size()), before = Index(set_.size());
        scaled_.resize(size_);
        for (Index k = 0; k < count; ++k) {
            if (old_[k] < 0) {
                for (Index i = 0; i < size_; ++i) scaled_[i] = weights_[i] * place_[which[k]][i];
                for (Index l = 0; l < count; ++l)
                    out[std::min(k, l) * count + std::max(k, l)] = padded_dot(scaled_.data(), place_[which[l]], size_) - total * mean[k] * mean[l];
                continue;
            }
            for (Index l = 0; l <= k; ++l)
                if (old_[l] >= 0) out[l * count + k] = last_[old_[l] * before + old_[k]];
        }
    }

    Index size_, count_ = 0;
    std::function<void(Index, double *)> read_;
    Syrk syrk_;
    std::vector<std::vector<double>> memory_;
    std::vector<const double *> place_;
    std::vector<double> scaled_, root_;
    std::vector<Index> set_, where_;      // the columns of the last call, and the position of each column in them or -1
    std::vector<Index> old_;              // where_ of the columns of this call
    std::vector<double> weights_, last_;  // c and the result of the last call
};

}  // namespace fenchel
