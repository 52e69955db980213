// min_z |B z - p|^2 + |diag(weight) z - q|^2 for a banded B, by Givens rotations.
//
// The normal equations would square the condition number, n^k for differences of order k of n samples: too large for double precision.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "linalg/storage.hpp"

namespace fenchel {

// Sparse rows, and their order by first column.
struct BandedRows {
    const Index *start, *column;
    const double *value;
    const Index *order;
    Index count;
};

// Checks the assumptions of the loops below.
inline bool fits_band(const BandedRows &B, Index entries, Index unknowns, Index width) {
    if (width < 0 || B.start[0] != 0 || B.start[B.count] != entries) return false;
    for (Index i = 0; i < B.count; ++i)
        if (B.start[i + 1] < B.start[i] || B.start[i + 1] > entries) return false;
    Index last = 0;
    for (Index k = 0; k < B.count; ++k) {
        const Index i = B.order[k];
        if (i < 0 || i >= B.count) return false;
        const Index begin = B.start[i], end = B.start[i + 1];
        if (begin == end) continue;
        if (B.column[begin] < last || B.column[end - 1] >= unknowns || B.column[end - 1] - B.column[begin] > width) return false;
        for (Index e = begin + 1; e < end; ++e)
            if (B.column[e] <= B.column[e - 1]) return false;
        last = B.column[begin];
    }
    return true;
}

// R starts as the diagonal; every row of B is rotated into it, from its first column on. Since rows are ordered by first column, their
// entries, fill-in included, stay within `width` columns after it.
inline void banded_least_squares(const BandedRows &B, Index unknowns, Index width, const double *p, const double *weight, const double *q, double *z) {
    const Index band = width + 1;
    std::vector<double> R(unknowns * band, 0.0), row(band);
    for (Index j = 0; j < unknowns; ++j) {
        R[j * band] = weight[j];
        z[j] = q[j];
    }
    for (Index k = 0; k < B.count; ++k) {
        const Index i = B.order[k], begin = B.start[i], end = B.start[i + 1];
        if (begin == end) continue;
        const Index first = B.column[begin], last = std::min(first + width, unknowns - 1);
        std::fill(row.begin(), row.end(), 0.0);
        for (Index e = begin; e < end; ++e) row[B.column[e] - first] = B.value[e];
        double right = p[i];
        for (Index j = first; j <= last; ++j) {
            const double below = row[j - first];
            if (below == 0) continue;
            double *above = &R[j * band];
            const double length = std::hypot(above[0], below), c = above[0] / length, s = below / length;
            for (Index t = 0; t <= last - j; ++t) {
                const double x = above[t], y = row[j - first + t];
                above[t] = c * x + s * y;
                row[j - first + t] = c * y - s * x;
            }
            const double x = z[j];
            z[j] = c * x + s * right;
            right = c * right - s * x;
        }
    }
    for (Index j = unknowns - 1; j >= 0; --j) {
        double sum = z[j];
        for (Index t = 1; t <= std::min(width, unknowns - 1 - j); ++t) sum -= R[j * band + t] * z[j + t];
        z[j] = sum / R[j * band];
    }
}

}  // namespace fenchel
