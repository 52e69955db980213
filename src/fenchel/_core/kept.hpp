// Columns of a dense matrix that are wanted again and again, copied one after the other as they are asked for.
#pragma once
#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include "parts.hpp"
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

// BLAS's product of a matrix with its transpose.
using Syrk = void(char *uplo, char *trans, int *n, int *k, double *alpha, double *a, int *lda, double *beta, double *c, int *ldc);

class KeptColumns {
  public:
    // Of d columns; read(j, out) copies one.
    KeptColumns(Index n, Index d, std::function<void(Index, double *)> read, Syrk *syrk)
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

    // X'diag(c)X - total mean mean' for some columns that are kept, and c >= 0.
    void gram(const std::vector<Index> &which, const double *c, double total, const std::vector<double> &mean, double *out) {
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
            syrk_(&lower, &transposed, &n, &k, &one, scaled_.data(), &k, &zero, out, &n);
        }
        for (Index k = 0; k < count; ++k)
            for (Index l = 0; l <= k; ++l) out[l * count + k] -= total * mean[k] * mean[l];
        mirror(out, count);
    }

  private:
    // With fewer columns a call takes longer than the sums.
    static constexpr Index enough_for_blas = 64;

    Index size_, count_ = 0;
    std::function<void(Index, double *)> read_;
    Syrk *syrk_;
    std::vector<std::vector<double>> memory_;
    std::vector<const double *> place_;
    std::vector<double> scaled_, root_;
};

}  // namespace fenchel
