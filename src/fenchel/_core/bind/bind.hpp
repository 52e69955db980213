// What the binding files share: array types, results that NumPy owns, and the matrix as a list of lines.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>

#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "losses/losses.hpp"
#include "linalg/storage.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace fenchel {

template <class T>
using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Mutable = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Matrix = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Output = nb::ndarray<nb::numpy, double, nb::ndim<1>>;

struct Result {
    double *data;
    Output array;
    explicit Result(Index size) : data(new double[size > 0 ? size : 1]()) {
        nb::capsule owner(data, [](void *p) noexcept { delete[] static_cast<double *>(p); });
        array = Output(data, {static_cast<size_t>(size)}, owner);
    }
};

// Numbers that NumPy owns from now on.
template <class T>
nb::ndarray<nb::numpy, T, nb::ndim<1>> owned(std::vector<T> &&values) {
    auto *kept = new std::vector<T>(std::move(values));
    nb::capsule owner(kept, [](void *p) noexcept { delete static_cast<std::vector<T> *>(p); });
    return {kept->data(), {kept->size()}, owner};
}

inline void check_size(Index given, Index expected, const char *what) {
    if (given != expected) throw std::invalid_argument(std::string(what) + " has " + std::to_string(given) + " entries, expected " + std::to_string(expected));
}

// A matrix as a list of lines; keeps the arrays it looks at alive.
class Lines {
  public:
    template <class T>
    explicit Lines(Matrix<T> a) : view_(Dense<T>{a.data(), static_cast<Index>(a.shape(0)), static_cast<Index>(a.shape(1))}), keep_{nb::cast(a)} {}
    template <class T, class I>
    Lines(Vector<I> indptr, Vector<I> indices, Vector<T> data, Index width, bool checked)
        : view_(Sparse<T, I>{indptr.data(), indices.data(), data.data(), static_cast<Index>(indptr.size()) - 1, width}),
          keep_{nb::cast(indptr), nb::cast(indices), nb::cast(data)} {
        const Index entries = static_cast<Index>(indices.size());
        if (indptr.size() == 0 || indptr(0) != 0 || data.size() != indices.size())
            throw std::invalid_argument("malformed sparse matrix: indptr must start at 0 and data and indices have one length");
        for (size_t i = 1; i < indptr.size(); ++i)
            if (indptr(i) < indptr(i - 1) || indptr(i) > entries)
                throw std::invalid_argument("malformed sparse matrix: indptr decreases or points past the data at position " + std::to_string(i));
        if (checked) return;  // a part of a matrix whose indices were looked at
        const Indices found = check_indices(std::get<Sparse<T, I>>(view_));
        if (found == Indices::outside) throw std::invalid_argument("malformed sparse matrix: an index lies outside 0 .. " + std::to_string(width - 1));
        has_duplicates_ = found == Indices::duplicated;
    }
    template <class F>
    auto visit(F &&f) const {
        return std::visit(std::forward<F>(f), view_);
    }
    bool has_duplicates() const { return has_duplicates_; }
    Index lines() const {
        return visit([](const auto &A) { return A.lines; });
    }
    Index width() const {
        return visit([](const auto &A) { return A.width; });
    }

  private:
    std::variant<Dense<double>, Dense<float>, Sparse<double, int>, Sparse<double, Index>, Sparse<float, int>, Sparse<float, Index>> view_;
    nb::object keep_[3];
    bool has_duplicates_ = false;
};

using Loss = std::variant<Hinge, SmoothedHinge, SquaredHinge, Logistic, Exponential, Squared, Pinball, EpsilonInsensitive, SquaredEpsilonInsensitive, Huber>;

void bind_approx(nb::module_ &m);
void bind_ascent(nb::module_ &m);
void bind_blocks(nb::module_ &m);
void bind_descent(nb::module_ &m);
void bind_gradient(nb::module_ &m);
void bind_sgd(nb::module_ &m);
void bind_total_variation(nb::module_ &m);
void bind_wide(nb::module_ &m);

}  // namespace fenchel
