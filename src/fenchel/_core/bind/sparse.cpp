// Coordinate descent, quadratic models, and paths on few dense samples, for Python.
#include "sparse/sparse_path.hpp"

#include <nanobind/stl/optional.h>

#include <optional>
#include <type_traits>

#include "bind/bind.hpp"
#include "losses/response.hpp"
#include "sparse/column_descent.hpp"
#include "sparse/quadratic.hpp"

namespace fenchel {

namespace {

// Coordinate descent on the quadratic model, in place: the weights w, and the model's derivative m without the intercept's part.
void descend_columns(const Lines &columns, Vector<Index> column, Vector<Index> first, Vector<double> c, Vector<double> curvature, Vector<double> threshold,
                     Vector<double> mean, double total, double ridge, Mutable w, Mutable m, double passes, double enough) {
    const Groups groups{column.data(), first.data(), Index(first.size()) - 1};
    check_sizes({m.size(), c.size()}, columns.width(), "the model's derivative and curvature");
    check_sizes({w.size(), mean.size()}, columns.lines(), "the weights and the means");
    check_sizes({curvature.size(), threshold.size()}, groups.count, "curvature and thresholds of the groups");
    check_groups(column, first, columns.lines());
    nb::gil_scoped_release release;
    const ColumnModel model{c.data(), curvature.data(), threshold.data(), mean.data(), total, ridge};
    columns.visit([&](const auto &M) { descend_along(M, groups, model, w.data(), m.data(), passes, enough); });
}

void minimise_quadratic(const Posv &posv, Matrix<double> H, Vector<Index> column, Vector<Index> first, Vector<double> threshold, Mutable u, Mutable slope,
                        double enough) {
    const Index size = H.shape(0);
    const Groups groups{column.data(), first.data(), Index(first.size()) - 1};
    check_sizes({H.shape(1), u.size(), slope.size()}, size, "a row of H, the weights and the slope");
    check_size(threshold.size(), groups.count, "the thresholds of the groups");
    check_groups(column, first, size);
    nb::gil_scoped_release release;
    Quadratic(H.data(), size, groups, threshold.data(), u.data(), slope.data()).minimise(posv, enough);
}

// X, minus the means of its columns if they are given.
template <class T>
struct CentredEntries {
    const T *data;
    Index row, column;  // strides
    const double *mean;
    template <class F>
    void visit(Index i, Index from, Index to, F &&f) const {
        const auto each = [&, x = data + i * row](auto stride) {  // known at compile time where rows are contiguous
            if (mean)
                for (Index j = from; j < to; ++j) f(j, static_cast<double>(x[j * stride]) - mean[j]);
            else
                for (Index j = from; j < to; ++j) f(j, static_cast<double>(x[j * stride]));
        };
        if (column == 1) each(std::integral_constant<Index, 1>{});
        else each(column);
    }
};

// With the targets and weights of some samples.
SmoothLoss smooth_loss(const Loss &loss, std::vector<double> y, std::vector<double> p, double smoothness) {
    return std::visit(
        [&](const auto &phi) -> SmoothLoss {
            if constexpr (std::decay_t<decltype(phi)>::piecewise_linear) throw std::invalid_argument("this loss has no second derivative");
            const Index n = Index(y.size());
            return {[=](const double *z, double *a, double *h) { return respond_all(phi, z, y.data(), p.data(), z, 0.0, n, a, h).loss; },
                    [=](const double *a, double theta) {
                        double sum = 0;
                        for (Index i = 0; i < n; ++i) sum -= p[i] * phi.conjugate(-theta * a[i], y[i]);
                        return sum;
                    },
                    smoothness};
        },
        loss);
}

// Calls f(X, n, d) with the entries of a dense matrix.
template <class F>
auto with_entries(const Lines &lines, bool by_rows, const std::optional<Vector<double>> &mean, F &&f) {
    const Index n = by_rows ? lines.lines() : lines.width(), d = by_rows ? lines.width() : lines.lines();
    if (mean) check_size(mean->size(), d, "the means");
    if (n == 0 || d == 0) throw std::invalid_argument("there must be a sample and a column");
    return lines.visit([&](const auto &A) -> decltype(f(CentredEntries<double>{}, n, d)) {
        if constexpr (requires { A.indptr; }) throw std::invalid_argument("sparse paths are for dense matrices");
        else return f(CentredEntries{A.data, by_rows ? d : 1, by_rows ? 1 : n, mean ? mean->data() : nullptr}, n, d);
    });
}

Int16Screen int16_screen(const Lines &lines, bool by_rows, std::optional<Vector<double>> mean, Vector<double> p) {
    nb::gil_scoped_release release;
    return with_entries(lines, by_rows, mean, [&](const auto &X, Index n, Index d) {
        check_size(p.size(), n, "the sample weights");
        return Int16Screen(n, d, p.data(), [X](Index i, Index from, Index to, auto &&f) { X.visit(i, from, to, f); });
    });
}

SparsePath sparse_path(const Lines &lines, bool by_rows, std::optional<Vector<double>> mean, const Int16Screen &screen, double offset, const Loss &loss,
                       Vector<double> y, Vector<double> p, double smoothness, bool intercept, double b, const Posv &posv, const Syrk &syrk,
                       const SparsePathTuning &tuning) {
    nb::gil_scoped_release release;
    return with_entries(lines, by_rows, mean, [&](const auto &X, Index n, Index d) -> SparsePath {
        check_sizes({y.size(), p.size(), size_t(screen.n)}, n, "a vector over the samples");
        check_size(screen.count, d, "the screen");
        std::vector<Index> rows;
        std::vector<double> targets, weights;
        for (Index i = 0; i < n; ++i) {
            if (!(p(i) > 0)) continue;
            rows.push_back(i);
            targets.push_back(y(i));
            weights.push_back(p(i));
        }
        const auto read = [X, rows](Index j, double *out) {
            for (const Index i : rows) X.visit(i, j, j + 1, [&](Index, double x) { *out++ = x; });
        };
        ColumnCache columns(Index(rows.size()), d, read, syrk);
        SmoothLoss on_rows = smooth_loss(loss, std::move(targets), weights, smoothness);
        return {tuning, screen, offset, std::move(columns), std::move(rows), std::move(weights), std::move(on_rows), intercept, b, posv};
    });
}

// The fields of PathModels for the first of some thresholds, as many as are found within `seconds`, without the first ones, `skip` of them.
auto advance(SparsePath &path, Vector<double> threshold, Vector<double> ridge, Vector<double> tol, double atol, double seconds, Index skip) {
    const Index count = Index(threshold.size());
    check_sizes({ridge.size(), tol.size()}, count, "a vector over the thresholds");
    PathModels models;
    {
        nb::gil_scoped_release release;
        using namespace std::chrono;
        const auto end = steady_clock::now() + duration_cast<steady_clock::duration>(duration<double>(std::min(seconds, 1e9)));
        for (Index k = 0; k < count; ++k) {
            const double next = k + 1 < count ? threshold(k + 1) : 0.95 * threshold(k);  // what comes after the last is not known
            if (!path.advance({threshold(k), ridge(k), next, tol(k), atol, end})) break;
            if (k >= skip) path.append_to(models);
        }
    }
    const auto give = [](auto &...vectors) { return std::make_tuple(owned(std::move(vectors))...); };
    auto &[starts, columns, weights, cut, near, near_starts, b, loss, multipliers, steps] = models;
    return give(starts, columns, weights, cut, near, near_starts, b, loss, multipliers, steps);
}

}  // namespace

void bind_sparse(nb::module_ &m) {
    m.def("descend_columns", &descend_columns, "columns"_a, exact("column"), exact("first"), "c"_a, "curvature"_a, "threshold"_a, "mean"_a, "total"_a,
          "ridge"_a, exact("w"), exact("m"), "passes"_a, "enough"_a);
    m.def("minimise_quadratic", &minimise_quadratic, "posv"_a, exact("H"), exact("column"), exact("first"), "threshold"_a, exact("u"), exact("slope"),
          "enough"_a);
    nb::class_<SparsePathTuning>(m, "SparsePathTuning")
        .def(nb::init<>())
        .def_rw("most_columns", &SparsePathTuning::most_columns)
        .def_rw("least_cut", &SparsePathTuning::least_cut)
        .def_rw("most_cut", &SparsePathTuning::most_cut);
    nb::class_<Int16Screen>(m, "Int16Screen").def("lengths", [](const Int16Screen &screen) { return owned(std::vector<double>(screen.length)); });
    m.def("int16_screen", &int16_screen, "lines"_a, "by_rows"_a, exact("mean").none(), exact("p"));
    nb::class_<SparsePath>(m, "SparsePath")
        .def_prop_ro("largest", &SparsePath::largest)
        .def("advance", &advance, exact("threshold"), exact("ridge"), exact("tol"), "atol"_a, "seconds"_a, "skip"_a);
    m.def("sparse_path", &sparse_path, "lines"_a, "by_rows"_a, exact("mean").none(), "screen"_a, "offset"_a, "loss"_a, exact("y"), exact("p"), "smoothness"_a,
          "intercept"_a, "b"_a, "posv"_a, "syrk"_a, "tuning"_a, nb::keep_alive<0, 1>(), nb::keep_alive<0, 3>(), nb::keep_alive<0, 4>());
}

}  // namespace fenchel
