// Submatrices of a sparse matrix, and symmetrisation of a triangle.
#pragma once
#include <algorithm>
#include <stdexcept>
#include <vector>

#include "linalg/storage.hpp"

namespace fenchel {

// The number of entries at each index.
template <class T, class I>
void count_entries(const Sparse<T, I> &A, Index *counts) {
    for (Index k = 0; k < A.entries(); ++k) ++counts[A.indices[k]];
}

// Memory for a submatrix.
template <class T, class I>
struct Submatrix {
    I *indptr, *indices;
    T *data;
    Index lines, entries;
};

[[noreturn]] inline void throw_changed() { throw std::invalid_argument("the matrix has changed: it does not have as many entries as before"); }

// Copies the entries at index j with place[j] >= 0 to index place[j], line by line, in their order. There must be memory for one more
// line, the longest: every entry is written, and overwritten by the next if it is not kept.
template <class T, class I>
void take_some(const Sparse<T, I> &A, const int *place, const Submatrix<T, I> &to) {
    Index next = 0;
    for (Index i = 0; i < A.lines; ++i) {
        to.indptr[i] = static_cast<I>(next);
        const auto x = A.line(i);
        if (next + x.size > to.entries) throw_changed();
        for (Index k = 0; k < x.size; ++k) {
            const int p = place[x.indices[k]];
            to.indices[next] = static_cast<I>(p);
            to.data[next] = x.value[k];
            next += p >= 0;
        }
    }
    to.indptr[A.lines] = static_cast<I>(next);
}

// The same entries, those with place[j] = p in line p, from indptr[p] to indptr[p + 1].
template <class T, class I>
void take_across(const Sparse<T, I> &A, const int *place, const Submatrix<T, I> &to) {
    const Index longest = A.longest_line();
    std::vector<int> line(longest + 1);
    std::vector<T> value(longest + 1);
    std::vector<I> next(to.indptr, to.indptr + to.lines);
    for (Index i = 0; i < A.lines; ++i) {
        const auto x = A.line(i);
        Index count = 0;
        for (Index k = 0; k < x.size; ++k) {
            line[count] = place[x.indices[k]];
            value[count] = x.value[k];
            count += line[count] >= 0;
        }
        for (Index k = 0; k < count; ++k) {
            const I at = next[line[k]]++;
            if (at >= to.indptr[line[k] + 1]) throw_changed();
            to.indices[at] = static_cast<I>(i);
            to.data[at] = value[k];
        }
    }
    for (Index p = 0; p < to.lines; ++p)
        if (next[p] != to.indptr[p + 1]) throw_changed();
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
