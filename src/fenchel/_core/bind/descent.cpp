// Primal coordinate descent for Python.
#include "bind/bind.hpp"
#include "sparse/column_descent.hpp"
#include "linalg/submatrix.hpp"
#include "sparse/quadratic.hpp"

namespace fenchel {

using Square = nb::ndarray<double, nb::ndim<2>, nb::device::cpu>;

void check_groups(const Vector<Index> &column, const Vector<Index> &first, Index width) {
    for (size_t g = 0; g + 1 < first.size(); ++g)
        if (first(g) < 0 || first(g) > first(g + 1) || first(g + 1) > Index(column.size()))
            throw std::invalid_argument("groups must begin one after the other");
    for (size_t k = 0; k < column.size(); ++k)
        if (column(k) < 0 || column(k) >= width) throw std::invalid_argument("a group names a column that does not exist");
}

std::tuple<double, double> descend_columns(const Lines &columns, Vector<Index> column, Vector<Index> first, Vector<Index> which, Vector<double> c,
                                           Vector<double> curvature, Vector<double> threshold, double ridge, bool intercept, Mutable w, double b, Mutable m,
                                           double passes, double enough) {
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

using Any = nb::ndarray<nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class T>
T *numbers(const Any &array, const char *what) {
    if (array.dtype() != nb::dtype<T>()) throw std::invalid_argument(std::string(what) + " must have the matrix's type of numbers");
    return static_cast<T *>(array.data());
}

// Some entries of every line of a sparse matrix: those at index j become index place[j], and those with place[j] < 0 are left out. What is
// taken is written to arrays; `across` puts the entries of one index after those of the other, from indptr on.
void take(const Lines &A, Vector<int> place, bool across, Any indptr, Any indices, Any data) {
    check_size(place.size(), A.width(), "the places");
    A.visit([&](const auto &M) {
        if constexpr (requires { M.indptr; }) {
            using T = std::decay_t<decltype(*M.data)>;
            using I = std::decay_t<decltype(*M.indptr)>;
            const Index lines = Index(indptr.size()) - 1, room = Index(indices.size());
            const Taken<T, I> part{numbers<I>(indptr, "indptr"), numbers<I>(indices, "indices"), numbers<T>(data, "data"), lines, room};
            check_size(data.size(), room, "the data");
            if (!across) {
                check_size(lines, M.lines, "the part");
            } else {
                bool valid = lines >= 0 && part.indptr[0] == 0 && Index(part.indptr[lines]) <= room;
                for (Index p = 0; p < lines; ++p) valid &= part.indptr[p] <= part.indptr[p + 1];
                for (size_t j = 0; j < place.size(); ++j) valid &= place(j) < lines;
                if (!valid) throw std::invalid_argument("the lines of the part must begin one after the other");
            }
            nb::gil_scoped_release release;
            across ? take_across(M, place.data(), part) : take_some(M, place.data(), part);
        } else {
            throw std::invalid_argument("take is for sparse matrices");
        }
    });
}

auto entries_across(const Lines &A) {
    auto *counts = new Index[std::max<Index>(1, A.width())]();
    nb::capsule owner(counts, [](void *p) noexcept { delete[] static_cast<Index *>(p); });
    A.visit([&](const auto &M) {
        if constexpr (requires { M.indptr; }) {
            nb::gil_scoped_release release;
            count_entries(M, counts);
        } else {
            throw std::invalid_argument("entries are counted in sparse matrices");
        }
    });
    return nb::ndarray<nb::numpy, Index, nb::ndim<1>>(counts, {static_cast<size_t>(A.width())}, owner);
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
    m.def("take", &take, "lines"_a, exact("place"), "across"_a, exact("indptr"), exact("indices"), exact("data"));
    m.def("entries_across", &entries_across, "lines"_a);
    m.def("mirror_lower", &mirror_lower, exact("H"));
    m.def("squares_along", &squares_along, "lines"_a, exact("which"), "a"_a);
}

}  // namespace fenchel
