// Paths on few dense samples for Python.
#include <nanobind/stl/optional.h>

#include <optional>

#include "bind/bind.hpp"
#include "losses/response.hpp"
#include "sparse/sparse_path.hpp"

namespace fenchel {

namespace {

// X, with the means of its columns taken off.
template <class T>
struct WideEntries {
    const T *data;
    Index row, column;  // how far apart rows are, and columns
    const double *mean;
    template <class F>
    void visit(Index i, Index from, Index to, F &&f) const {
        const T *x = data + i * row;
        if (mean)
            for (Index j = from; j < to; ++j) f(j, static_cast<double>(x[j * column]) - mean[j]);
        else if (column == 1)
            for (Index j = from; j < to; ++j) f(j, static_cast<double>(x[j]));
        else
            for (Index j = from; j < to; ++j) f(j, static_cast<double>(x[j * column]));
    }
};

// With the targets and shares of some samples.
SmoothLoss smooth(const Loss &loss, std::vector<double> y, std::vector<double> p, double smoothness) {
    return std::visit(
        [&](const auto &phi) -> SmoothLoss {
            if constexpr (std::decay_t<decltype(phi)>::straight) throw std::invalid_argument("this loss has no second derivative");
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
    return lines.visit([&](const auto &A) -> decltype(f(WideEntries<double>{}, n, d)) {
        if constexpr (requires { A.indptr; }) throw std::invalid_argument("wide paths are for dense matrices");
        else return f(WideEntries{A.data, by_rows ? d : 1, by_rows ? 1 : n, mean ? mean->data() : nullptr}, n, d);
    });
}

ShortColumns short_columns(const Lines &lines, bool by_rows, std::optional<Vector<double>> mean, Vector<double> shares) {
    nb::gil_scoped_release release;
    return with_entries(lines, by_rows, mean, [&](const auto &X, Index n, Index d) {
        check_size(shares.size(), n, "the shares");
        return ShortColumns(n, d, shares.data(), [X](Index i, Index from, Index to, auto &&f) { X.visit(i, from, to, f); });
    });
}

WidePath wide_path(const Lines &lines, bool by_rows, std::optional<Vector<double>> mean, const ShortColumns &shorts, double apart, const Loss &loss,
                   Vector<double> y, Vector<double> p, double smoothness, bool intercept, double b, nb::capsule posv, nb::capsule syrk) {
    auto *solve = reinterpret_cast<Posv *>(posv.data());
    auto *product = reinterpret_cast<Syrk *>(syrk.data());
    nb::gil_scoped_release release;
    return with_entries(lines, by_rows, mean, [&](const auto &X, Index n, Index d) -> WidePath {
        for (const Index size : {Index(y.size()), Index(p.size()), shorts.n}) check_size(size, n, "what there is for every sample");
        check_size(shorts.count, d, "the columns in short");
        std::vector<Index> rows;
        std::vector<double> targets, shares;
        for (Index i = 0; i < n; ++i) {
            if (!(p(i) > 0)) continue;
            rows.push_back(i);
            targets.push_back(y(i));
            shares.push_back(p(i));
        }
        const auto read = [X, rows](Index j, double *out) {
            for (const Index i : rows) X.visit(i, j, j + 1, [&](Index, double x) { *out++ = x; });
        };
        KeptColumns columns(Index(rows.size()), d, read, product);
        SmoothLoss smoothed = smooth(loss, std::move(targets), shares, smoothness);
        return {shorts, apart, std::move(columns), std::move(rows), std::move(shares), std::move(smoothed), intercept, b, solve};
    });
}

// Models for the first of some thresholds, as many as are found: where each one's weights begin, their columns, and they; the largest |v_j|
// near its threshold, and where there is a ridge all that are near, and where they begin; intercepts, mean losses, multipliers, steps.
nb::tuple advance(WidePath &path, Vector<double> threshold, Vector<double> ridge, Vector<double> tol, double atol, double seconds) {
    const Index count = Index(threshold.size());
    for (const Index size : {Index(ridge.size()), Index(tol.size())}) check_size(size, count, "what is asked for");
    std::vector<Index> starts{0}, columns, near_starts{0}, steps;
    std::vector<double> weights, largest, near, b, loss, multipliers;
    {
        nb::gil_scoped_release release;
        using namespace std::chrono;
        const auto end =
            seconds < 1e6 ? steady_clock::now() + duration_cast<steady_clock::duration>(duration<double>(seconds)) : steady_clock::time_point::max();
        for (Index k = 0; k < count; ++k) {
            const double next = k + 1 < count ? threshold(k + 1) : 0.95 * threshold(k);
            if (!path.advance({threshold(k), ridge(k), next, tol(k), atol, end})) break;
            for (size_t i = 0; i < path.columns().size(); ++i) {
                if (path.weights()[i] == 0) continue;
                columns.push_back(path.columns()[i]);
                weights.push_back(path.weights()[i]);
            }
            largest.push_back(0);
            for (const Near &one : path.near()) {
                largest.back() = std::max(largest.back(), one.size);
                if (ridge(k) > 0) near.push_back(one.size);
            }
            multipliers.resize(multipliers.size() + path.samples(), 0.0);
            path.multipliers([last = multipliers.end() - path.samples()](Index i, double a) { last[i] = a; });
            starts.push_back(Index(columns.size()));
            near_starts.push_back(Index(near.size()));
            b.push_back(path.intercept());
            loss.push_back(path.loss());
            steps.push_back(path.steps());
        }
    }
    return nb::make_tuple(owned(std::move(starts)), owned(std::move(columns)), owned(std::move(weights)), owned(std::move(largest)),
                          owned(std::move(near_starts)), owned(std::move(near)), owned(std::move(b)), owned(std::move(loss)), owned(std::move(multipliers)),
                          owned(std::move(steps)));
}

}  // namespace

void bind_wide(nb::module_ &m) {
    const auto exact = [](const char *name) { return nb::arg(name).noconvert(); };
    nb::class_<ShortColumns>(m, "ShortColumns").def("lengths", [](const ShortColumns &shorts) { return owned(std::vector<double>(shorts.length)); });
    m.def("short_columns", &short_columns, "lines"_a, "by_rows"_a, exact("mean").none(), exact("shares"));
    nb::class_<WidePath>(m, "WidePath")
        .def_prop_ro("largest", &WidePath::largest)
        .def("advance", &advance, exact("threshold"), exact("ridge"), exact("tol"), "atol"_a, "seconds"_a);
    m.def("wide_path", &wide_path, "lines"_a, "by_rows"_a, exact("mean").none(), "shorts"_a, "apart"_a, "loss"_a, exact("y"), exact("p"), "smoothness"_a,
          "intercept"_a, "b"_a, "posv"_a, "syrk"_a, nb::keep_alive<0, 1>(), nb::keep_alive<0, 3>(), nb::keep_alive<0, 4>());
}

}  // namespace fenchel
