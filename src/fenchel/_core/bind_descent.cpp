// Primal coordinate descent for Python.
#include "bind.hpp"
#include "descent.hpp"
#include "parts.hpp"
#include "quadratic.hpp"

namespace fenchel {

using Square = nb::ndarray<double, nb::ndim<2>, nb::device::cpu>;

void check_groups(const Vector<Index> &column, const Vector<Index> &first, Index width) {
    for (size_t g = 0; g + 1 < first.size(); ++g)
        if (first(g) < 0 || first(g) > first(g + 1) || first(g + 1) > Index(column.size())) throw std::invalid_argument("groups must begin one after the other");
    for (size_t k = 0; k < column.size(); ++k)
        if (column(k) < 0 || column(k) >= width) throw std::invalid_argument("a group names a column that does not exist");
}

std::tuple<double, double> descend_columns(const Lines &columns, Vector<Index> column, Vector<Index> first, Vector<Index> which, Vector<double> c,
                                          Vector<double> curvature, Vector<double> threshold, double ridge, bool intercept, Mutable w, double b,
                                          Mutable m, double passes, double enough) {
    const Index count = Index(first.size()) - 1;
    check_size(m.size(), columns.width(), "the model's derivative");
    check_size(c.size(), columns.width(), "the model's curvature");
    check_size(w.size(), columns.lines(), "the weights");
    check_size(curvature.size(), count, "the curvature of the groups");
    check_size(threshold.size(), count, "the thresholds of the groups");
    check_groups(column, first, columns.lines());
    for (size_t k = 0; k < which.size(); ++k)
        if (which(k) < 0 || which(k) >= count) throw std::invalid_argument("which names a group that does not exist");
    nb::gil_scoped_release release;
    const ColumnModel model{c.data(), threshold.data(), ridge, intercept, Index(c.size())};
    const double made = columns.visit([&](const auto &M) {
        ColumnDescent descent(M, Groups{column.data(), first.data()}, count, curvature.data(), model, w.data(), m.data());
        const double passed = descent.descend(which.data(), Index(which.size()), passes, enough);
        b += descent.settle();
        return passed;
    });
    return {b, made};
}

void minimise_quadratic(nb::capsule posv, Matrix<double> H, Vector<Index> column, Vector<Index> first, Vector<double> threshold, Mutable u, Mutable slope,
                         Index passes, Index faces, Index steps, double enough) {
    const Index size = H.shape(0), count = Index(first.size()) - 1;
    check_size(H.shape(1), size, "a row of H");
    check_size(u.size(), size, "the weights");
    check_size(slope.size(), size, "the slope");
    check_size(threshold.size(), count, "the thresholds of the groups");
    check_groups(column, first, size);
    auto *solve = reinterpret_cast<Posv *>(posv.data());
    nb::gil_scoped_release release;
    Quadratic model(H.data(), size, Groups{column.data(), first.data()}, count, threshold.data(), u.data(), slope.data());
    model.minimise(solve, passes, faces, steps, enough);
}

Output squares_along(const Lines &A, Vector<Index> which, Vector<double> a) {
    check_size(a.size(), A.width(), "the weights");
    for (size_t k = 0; k < which.size(); ++k)
        if (which(k) < 0 || which(k) >= A.lines()) throw std::invalid_argument("which names a line that does not exist");
    Result out(which.size());
    nb::gil_scoped_release release;
    A.visit([&](const auto &M) {
        for (size_t k = 0; k < which.size(); ++k) out.data[k] = weighted_square(M.line(which.data()[k]), a.data());
    });
    return out.array;
}

template <class T>
nb::object owned(std::vector<T> &&values) {
    auto *kept = new std::vector<T>(std::move(values));
    nb::capsule owner(kept, [](void *p) noexcept { delete static_cast<std::vector<T> *>(p); });
    return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(kept->data(), {kept->size()}, owner));
}

// Some entries of every line of a sparse matrix: those at index j become index place[j], and those with place[j] < 0 are left out.
nb::tuple take(const Lines &A, Vector<int> place) {
    check_size(place.size(), A.width(), "the places");
    return A.visit([&](const auto &M) -> nb::tuple {
        if constexpr (requires { M.indptr; }) {
            auto part = [&] {
                nb::gil_scoped_release release;
                return take_some(M, place.data());
            }();
            return nb::make_tuple(owned(std::move(part.indptr)), owned(std::move(part.indices)), owned(std::move(part.data)));
        } else {
            throw std::invalid_argument("take is for sparse matrices");
        }
    });
}

void mirror_lower(Square H) {
    check_size(H.shape(1), H.shape(0), "a row of H");
    nb::gil_scoped_release release;
    mirror(H.data(), H.shape(0));
}

void bind_descent(nb::module_ &m) {
    const auto exact = [](const char *name) { return nb::arg(name).noconvert(); };
    m.def("descend_columns", &descend_columns, "columns"_a, exact("column"), exact("first"), exact("which"), "c"_a, "curvature"_a, "threshold"_a, "ridge"_a,
          "intercept"_a, exact("w"), "b"_a, exact("m"), "passes"_a, "enough"_a);
    m.def("minimise_quadratic", &minimise_quadratic, "posv"_a, exact("H"), exact("column"), exact("first"), "threshold"_a, exact("u"), exact("slope"),
          "passes"_a, "faces"_a, "steps"_a, "enough"_a);
    m.def("take", &take, "lines"_a, exact("place"));
    m.def("mirror_lower", &mirror_lower, exact("H"));
    m.def("squares_along", &squares_along, "lines"_a, exact("which"), "a"_a);
}

}  // namespace fenchel
