// Common to the binding files: array types, results that NumPy owns, checks, and the matrix as a list of lines.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>

#include <initializer_list>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "linalg/storage.hpp"
#include "losses/links.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace fenchel {

template <class T>
using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Mutable = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Matrix = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <int dimensions>
using OutputOf = nb::ndarray<nb::numpy, double, nb::ndim<dimensions>>;
using Output = OutputOf<1>;

// Zeros owned by NumPy.
template <class... Shape>
struct Result {
    double *data;
    OutputOf<sizeof...(Shape)> array;
    explicit Result(Shape... shape) : data(new double[std::max<Index>(1, (Index(shape) * ...))]()) {
        nb::capsule owner(data, [](void *p) noexcept { delete[] static_cast<double *>(p); });
        array = {data, {static_cast<size_t>(shape)...}, owner};
    }
};

// Moves numbers into an array owned by NumPy.
template <class T>
nb::ndarray<nb::numpy, T, nb::ndim<1>> owned(std::vector<T> &&values) {
    auto *kept = new std::vector<T>(std::move(values));
    nb::capsule owner(kept, [](void *p) noexcept { delete static_cast<std::vector<T> *>(p); });
    return {kept->data(), {kept->size()}, owner};
}

inline void check_size(Index given, Index expected, const char *what) {
    if (given != expected) throw std::invalid_argument(std::string(what) + " has " + std::to_string(given) + " entries, expected " + std::to_string(expected));
}

inline void check_sizes(std::initializer_list<size_t> given, Index expected, const char *what) {
    for (const size_t size : given) check_size(Index(size), expected, what);
}

template <class Indices>
void check_within(const Indices &indices, Index count, const char *message) {
    bool inside = true;
    for (size_t k = 0; k < indices.size(); ++k) inside &= 0 <= indices.data()[k] && indices.data()[k] < count;
    if (!inside) throw std::invalid_argument(message);
}

// Groups of columns: group g has the columns column[first[g]] .. column[first[g + 1]].
inline void check_groups(const Vector<Index> &column, const Vector<Index> &first, Index width) {
    for (size_t g = 0; g + 1 < first.size(); ++g)
        if (first(g) < 0 || first(g) > first(g + 1) || first(g + 1) > Index(column.size()))
            throw std::invalid_argument("groups must begin one after the other");
    check_within(column, width, "a group names a column that does not exist");
}

// An argument that is not converted.
inline auto exact(const char *name) { return nb::arg(name).noconvert(); }

// A matrix as a list of lines; keeps its arrays alive.
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
        if (checked) return;  // a submatrix of a matrix whose indices were checked
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

using Link = std::variant<Linear, Threshold, Power, Entropic>;

void bind_approx(nb::module_ &m);
void bind_ascent(nb::module_ &m);
void bind_interpolation(nb::module_ &m);
void bind_multiclass(nb::module_ &m);
void bind_linalg(nb::module_ &m);
void bind_margin(nb::module_ &m);
void bind_gradient(nb::module_ &m);
void bind_gram(nb::module_ &m);
void bind_primal_gradient(nb::module_ &m);
void bind_denoise(nb::module_ &m);
void bind_sparse(nb::module_ &m);

}  // namespace fenchel
