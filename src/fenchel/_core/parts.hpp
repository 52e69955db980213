// Parts of a sparse matrix, and of a symmetric one.
#pragma once
#include <algorithm>
#include <vector>

#include "storage.hpp"

namespace fenchel {

template <class T, class I>
struct Taken {
    std::vector<I> indptr, indices;
    std::vector<T> data;
};

// Every line with the entries at index j that have place[j] >= 0, at index place[j], in the order that they had.
template <class T, class I>
Taken<T, I> take_some(const Sparse<T, I> &A, const int *place) {
    Taken<T, I> part;
    part.indptr.resize(A.lines + 1);
    Index count = 0;
    for (Index i = 0; i < A.lines; ++i) {
        part.indptr[i] = static_cast<I>(count);
        const auto x = A.line(i);
        for (Index k = 0; k < x.size; ++k) count += place[x.indices[k]] >= 0;
    }
    part.indptr[A.lines] = static_cast<I>(count);
    part.indices.resize(count + 1);  // one more: every entry is written, and kept only if the next is written after it
    part.data.resize(count + 1);
    Index next = 0;
    for (Index i = 0; i < A.lines; ++i) {
        const auto x = A.line(i);
        for (Index k = 0; k < x.size; ++k) {
            const int p = place[x.indices[k]];
            part.indices[next] = static_cast<I>(p);
            part.data[next] = x.value[k];
            next += p >= 0;
        }
    }
    part.indices.resize(count);
    part.data.resize(count);
    return part;
}

// Copies the lower triangle of a symmetric matrix, stored column after column, to the upper one; tile by tile.
inline void mirror(double *H, Index size) {
    constexpr Index tile = 32;
    for (Index column = 0; column < size; column += tile)
        for (Index row = column; row < size; row += tile)
            for (Index j = column; j < std::min(column + tile, size); ++j)
                for (Index i = std::max(row, j + 1); i < std::min(row + tile, size); ++i) H[i * size + j] = H[j * size + i];
}

}  // namespace fenchel
