// One view of dense and sparse matrices.
//
// A matrix is a list of "lines": rows of a CSR or C-ordered matrix, columns of a CSC or F-ordered one. Every kernel is written once
// over lines.
#pragma once
#include <algorithm>
#include <cstdint>
#include <exception>
#include <system_error>
#include <thread>
#include <type_traits>
#include <vector>

namespace fenchel {

using Index = std::int64_t;

template <class T>
struct DenseLine {
    const T *value;
    Index size;
    Index index(Index k) const { return k; }
    void prefetch_after(Index) const {}
};

template <class T, class I>
struct SparseLine {
    const T *value;
    const I *indices;
    Index size;
    Index index(Index k) const { return static_cast<Index>(indices[k]); }
    // Prefetches about a page after entry k, where the hardware prefetcher stops; for lines visited in order.
    void prefetch_after(Index k) const {
#if defined(__GNUC__)
        constexpr Index distance = 512;  // addresses as integers: they may lie beyond the arrays
        const auto prefetch = [](std::uintptr_t address) { __builtin_prefetch(reinterpret_cast<const void *>(address), 0, 2); };
        prefetch(reinterpret_cast<std::uintptr_t>(value) + (k + distance) * sizeof(T));
        prefetch(reinterpret_cast<std::uintptr_t>(indices) + (k + distance) * sizeof(I));
#endif
    }
};

template <class T>
struct Dense {
    using Value = T;
    const T *data;
    Index lines, width;
    DenseLine<T> line(Index i) const { return {data + i * width, width}; }
    Index entries() const { return lines * width; }
    bool outgrows_cache() const { return false; }
    Index longest_line() const { return width; }
    // First line of part p when the matrix is cut into `parts` of about equal work.
    Index split(Index p, Index parts) const { return lines * p / parts; }
    void prefetch_start(Index) const {}
    void prefetch(Index i) const {
#if defined(__GNUC__)
        for (Index k = 0; k < width; k += 64 / static_cast<Index>(sizeof(T))) __builtin_prefetch(data + i * width + k);
#endif
    }
};

template <class T, class I>
struct Sparse {
    using Value = T;
    const I *indptr;
    const I *indices;
    const T *data;
    Index lines, width;
    SparseLine<T, I> line(Index i) const {
        const Index start = static_cast<Index>(indptr[i]);
        return {data + start, indices + start, static_cast<Index>(indptr[i + 1]) - start};
    }
    Index entries() const { return static_cast<Index>(indptr[lines]); }
    // Whether a pass in order is limited by memory bandwidth.
    bool outgrows_cache() const { return entries() > 2'000'000; }
    Index longest_line() const {
        Index longest = 0;
        for (Index i = 0; i < lines; ++i) {
            const Index size = static_cast<Index>(indptr[i + 1]) - static_cast<Index>(indptr[i]);
            longest = size > longest ? size : longest;
        }
        return longest;
    }
    Index split(Index p, Index parts) const {
        if (p >= parts) return lines;
        const Index target = entries() / parts * p;
        Index low = 0, high = lines;
        while (low < high) {
            const Index middle = low + (high - low) / 2;
            if (static_cast<Index>(indptr[middle]) < target) low = middle + 1;
            else high = middle;
        }
        return low;
    }
    void prefetch_start(Index i) const {
#if defined(__GNUC__)
        __builtin_prefetch(indptr + i);
#endif
    }
    void prefetch(Index i) const {
#if defined(__GNUC__)
        const Index start = static_cast<Index>(indptr[i]), stop = static_cast<Index>(indptr[i + 1]);
        for (Index k = start; k < stop; k += 64 / static_cast<Index>(sizeof(T))) __builtin_prefetch(data + k);
        for (Index k = start; k < stop; k += 64 / static_cast<Index>(sizeof(I))) __builtin_prefetch(indices + k);
#endif
    }
};

enum class Indices { fine, duplicated, outside };

// The largest index, as an unsigned number so that negative ones are large, and how many are not above the one before them.
struct IndexRange {
    std::uint64_t largest = 0;
    Index descents = 0;
};

template <class I>
IndexRange index_range(const I *index, Index size) {
    using Unsigned = std::make_unsigned_t<I>;
    constexpr Index block = 4096;  // counted in the width of an index
    Unsigned largest = size > 0 ? static_cast<Unsigned>(index[0]) : 0;
    Index descents = 0;
    for (Index start = 1; start < size; start += block) {
        const Index stop = std::min(start + block, size);
        I falls = 0;
#pragma omp simd reduction(max : largest) reduction(+ : falls)
        for (Index k = start; k < stop; ++k) {
            largest = std::max(largest, static_cast<Unsigned>(index[k]));
            falls += index[k] <= index[k - 1];
        }
        descents += falls;
    }
    return {largest, descents};
}

// Unsorted indices are fine. For each column the last line with it is stored, unless all descents are at the start of a line.
template <class T, class I>
Indices check_indices(const Sparse<T, I> &A) {
    const Index entries = A.entries();
    const IndexRange range = index_range(A.indices, entries);
    if (entries > 0 && range.largest >= static_cast<std::uint64_t>(A.width)) return Indices::outside;
    Index allowed = 0;
    for (Index i = 1; i < A.lines; ++i) {
        const Index start = static_cast<Index>(A.indptr[i]);
        if (start > 0 && start < static_cast<Index>(A.indptr[i + 1])) allowed += A.indices[start] <= A.indices[start - 1];
    }
    if (range.descents == allowed) return Indices::fine;
    std::vector<Index> last_line(A.width, -1);
    for (Index i = 0; i < A.lines; ++i) {
        const auto x = A.line(i);
        for (Index k = 0; k < x.size; ++k) {
            if (last_line[x.index(k)] == i) return Indices::duplicated;
            last_line[x.index(k)] = i;
        }
    }
    return Indices::fine;
}

// Runs f(part) for part = 0 .. parts - 1, one thread each, or in this thread if none can be started. Rethrows the first exception.
template <class F>
void parallel(Index parts, F &&f) {
    std::vector<std::exception_ptr> errors(parts);
    const auto guarded = [&](Index p) {
        try {
            f(p);
        } catch (...) {
            errors[p] = std::current_exception();
        }
    };
    std::vector<std::thread> others;
    others.reserve(parts);
    for (Index p = 1; p < parts; ++p) {
        try {
            others.emplace_back(guarded, p);
        } catch (const std::system_error &) {
            guarded(p);
        }
    }
    guarded(Index{0});
    for (auto &t : others) t.join();
    for (const auto &error : errors)
        if (error) std::rethrow_exception(error);
}

}  // namespace fenchel
