// Parts of a sparse matrix, and of a symmetric one.
#pragma once
#include <algorithm>
#include <stdexcept>
#include <vector>

#include "linalg/storage.hpp"

namespace fenchel {

// How many entries every index has.
template <class T, class I>
void count_entries(const Sparse<T, I> &A, Index *counts) {
    for (Index k = 0; k < A.entries(); ++k) ++counts[A.indices[k]];
}

// Where a part of a sparse matrix is written to: room for its lines, and for its entries.
template <class T, class I>
struct Taken {
    I *indptr, *indices;
    T *data;
    Index lines, room;
};

[[noreturn]] inline void complain_of_change() { throw std::invalid_argument("the matrix has changed: it does not have as many entries as before"); }

// Every line with the entries at index j that have place[j] >= 0, at index place[j], in the order that they had. There must be room for one
// more line, the longest: every entry is written, and kept only if the next is written after it.
template <class T, class I>
void take_some(const Sparse<T, I> &A, const int *place, const Taken<T, I> &part) {
    Index next = 0;
    for (Index i = 0; i < A.lines; ++i) {
        part.indptr[i] = static_cast<I>(next);
        const auto x = A.line(i);
        if (next + x.size > part.room) complain_of_change();
        for (Index k = 0; k < x.size; ++k) {
            const int p = place[x.indices[k]];
            part.indices[next] = static_cast<I>(p);
            part.data[next] = x.value[k];
            next += p >= 0;
        }
    }
    part.indptr[A.lines] = static_cast<I>(next);
}

// The same entries, those with place[j] = p in line p, from indptr[p] to indptr[p + 1].
template <class T, class I>
void take_across(const Sparse<T, I> &A, const int *place, const Taken<T, I> &part) {
    const Index longest = A.longest_line();
    std::vector<int> line(longest + 1);
    std::vector<T> value(longest + 1);
    std::vector<I> next(part.indptr, part.indptr + part.lines);
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
            if (at >= part.indptr[line[k] + 1]) complain_of_change();
            part.indices[at] = static_cast<I>(i);
            part.data[at] = value[k];
        }
    }
    for (Index p = 0; p < part.lines; ++p)
        if (next[p] != part.indptr[p + 1]) complain_of_change();
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
