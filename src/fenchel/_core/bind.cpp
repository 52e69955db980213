// The only file that knows nanobind: arrays in, arrays out, the GIL released in between.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>

#include <stdexcept>
#include <tuple>
#include <variant>

#include "ascent.hpp"
#include "svmlight.hpp"
#include "total_variation.hpp"

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

void check_size(Index given, Index expected, const char *what) {
    if (given != expected)
        throw std::invalid_argument(std::string(what) + " has " + std::to_string(given) + " entries, expected " + std::to_string(expected));
}

// A matrix as a list of lines; keeps the arrays it looks at alive.
class Lines {
  public:
    template <class T>
    explicit Lines(Matrix<T> a)
        : view_(Dense<T>{a.data(), static_cast<Index>(a.shape(0)), static_cast<Index>(a.shape(1))}), keep_{nb::cast(a)} {}
    template <class T, class I>
    Lines(Vector<I> indptr, Vector<I> indices, Vector<T> data, Index width)
        : view_(Sparse<T, I>{indptr.data(), indices.data(), data.data(), static_cast<Index>(indptr.size()) - 1, width}),
          keep_{nb::cast(indptr), nb::cast(indices), nb::cast(data)} {
        const Index entries = static_cast<Index>(indices.size());
        if (indptr.size() == 0 || indptr(0) != 0 || data.size() != indices.size())
            throw std::invalid_argument("malformed sparse matrix: indptr must start at 0 and data and indices have one length");
        for (size_t i = 1; i < indptr.size(); ++i)
            if (indptr(i) < indptr(i - 1) || indptr(i) > entries)
                throw std::invalid_argument("malformed sparse matrix: indptr decreases or points past the data at position " + std::to_string(i));
        const Indices found = check_indices(std::get<Sparse<T, I>>(view_));
        if (found == Indices::outside)
            throw std::invalid_argument("malformed sparse matrix: an index lies outside 0 .. " + std::to_string(width - 1));
        has_duplicates_ = found == Indices::duplicated;
    }
    template <class F>
    auto visit(F &&f) const { return std::visit(std::forward<F>(f), view_); }
    bool has_duplicates() const { return has_duplicates_; }
    Index lines() const { return visit([](const auto &A) { return A.lines; }); }
    Index width() const { return visit([](const auto &A) { return A.width; }); }

  private:
    std::variant<Dense<double>, Dense<float>, Sparse<double, int>, Sparse<double, Index>, Sparse<float, int>, Sparse<float, Index>> view_;
    nb::object keep_[3];
    bool has_duplicates_ = false;
};

using Product = std::tuple<Output, Output, Index>;

Product gather_lines(const Lines &A, Vector<double> w, bool bound, Index threads) {
    check_size(w.size(), A.width(), "the vector");
    Result out(A.lines()), error(bound ? A.lines() : 0);
    Index depth;
    {
        nb::gil_scoped_release release;
        depth = A.visit([&](const auto &M) { return gather(M, w.data(), out.data, bound ? error.data : nullptr, threads); });
    }
    return {out.array, error.array, depth};
}

Product scatter_lines(const Lines &A, Vector<double> a, bool bound, Index threads) {
    check_size(a.size(), A.lines(), "the vector");
    Result out(A.width()), error(bound ? A.width() : 0);
    Index depth;
    {
        nb::gil_scoped_release release;
        depth = A.visit([&](const auto &M) { return scatter(M, a.data(), out.data, bound ? error.data : nullptr, threads); });
    }
    return {out.array, error.array, depth};
}

Output norms_along(const Lines &A, double p, Vector<double> s) {
    check_size(s.size(), A.width(), "the weights");
    Result out(A.lines());
    {
        nb::gil_scoped_release release;
        A.visit([&](const auto &M) { line_norms(M, p, s.data(), out.data); });
    }
    return out.array;
}

Output norms_across(const Lines &A, double p, Vector<double> s) {
    check_size(s.size(), A.lines(), "the weights");
    Result out(A.width());
    {
        nb::gil_scoped_release release;
        A.visit([&](const auto &M) { across_norms(M, p, s.data(), out.data); });
    }
    return out.array;
}

using Loss = std::variant<Hinge, SmoothedHinge, SquaredHinge, Logistic, Exponential, Squared, Pinball, EpsilonInsensitive,
                          SquaredEpsilonInsensitive, Huber>;

double ascend_rows(const Loss &loss, const Lines &rows, Vector<double> y, Vector<double> s, Vector<double> squared_norm,
                   Vector<Index> order, Mutable alpha, Mutable u, double mu, double threshold, double inverse_rho, double W, double b) {
    for (Index size : {Index(y.size()), Index(s.size()), Index(squared_norm.size()), Index(alpha.size())})
        check_size(size, rows.lines(), "a vector over the samples");
    check_size(u.size(), rows.width(), "u");
    for (size_t k = 0; k < order.size(); ++k)
        if (order.data()[k] < 0 || order.data()[k] >= rows.lines()) throw std::invalid_argument("order names a sample that does not exist");
    const Ascent p{mu, threshold, inverse_rho, W, b};
    nb::gil_scoped_release release;
    return std::visit(
        [&](const auto &phi) {
            return rows.visit([&](const auto &M) {
                const Index steps = static_cast<Index>(order.size());
                return threshold > 0 ? ascend<true>(phi, M, y.data(), s.data(), squared_norm.data(), order.data(), steps, alpha.data(), u.data(), p)
                                     : ascend<false>(phi, M, y.data(), s.data(), squared_norm.data(), order.data(), steps, alpha.data(), u.data(), p);
            });
        },
        loss);
}

template <class F>
Output over_samples(std::initializer_list<Index> sizes, F &&f) {
    const Index size = *sizes.begin();
    for (const Index other : sizes) check_size(other, size, "a vector over the samples");
    Result out(size);
    for (Index i = 0; i < size; ++i) out.data[i] = f(i);
    return out.array;
}

template <class L>
nb::class_<L> bind_loss(nb::module_ &m, const char *name) {
    using V = Vector<double>;
    return nb::class_<L>(m, name)
        .def("value", [](const L &l, V z, V y) { return over_samples({Index(z.size()), Index(y.size())}, [&](Index i) { return l.value(z(i), y(i)); }); })
        .def("derivative", [](const L &l, V z, V y) { return over_samples({Index(z.size()), Index(y.size())}, [&](Index i) { return l.derivative(z(i), y(i)); }); })
        .def("conjugate", [](const L &l, V u, V y) { return over_samples({Index(u.size()), Index(y.size())}, [&](Index i) { return l.conjugate(u(i), y(i)); }); })
        .def("dual_step", [](const L &l, V a, V z, V q, V y) {
            return over_samples({Index(a.size()), Index(z.size()), Index(q.size()), Index(y.size())}, [&](Index i) { return l.dual_step(a(i), z(i), q(i), y(i)); });
        });
}

template <class L>
void bind_plain_loss(nb::module_ &m, const char *name) { bind_loss<L>(m, name).def(nb::init<>()); }
template <class L>
void bind_loss_with_parameter(nb::module_ &m, const char *name) {
    bind_loss<L>(m, name).def("__init__", [](L *self, double parameter) { new (self) L{parameter}; });
}

template <class T>
nb::ndarray<nb::numpy, T, nb::ndim<1>> owned(std::vector<T> &&values) {
    auto *kept = new std::vector<T>(std::move(values));
    nb::capsule owner(kept, [](void *p) noexcept { delete static_cast<std::vector<T> *>(p); });
    return {kept->data(), {kept->size()}, owner};
}

auto parse_svmlight(nb::bytes chunk, Index first_line) {
    const std::string_view text(chunk.c_str(), chunk.size());
    SvmlightRows rows;
    {
        nb::gil_scoped_release release;
        rows = SvmlightParser(first_line).parse(text);
    }
    return std::make_tuple(owned(std::move(rows.labels)), owned(std::move(rows.lengths)), owned(std::move(rows.indices)),
                           owned(std::move(rows.values)));
}

bool runs_x86_64_v3() {
#if defined(__x86_64__) && defined(__GNUC__)
    // every processor with these also has the rest of x86-64-v3 (bmi1, f16c, lzcnt, movbe)
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
#else
    return false;
#endif
}

}  // namespace fenchel

NB_MODULE(FENCHEL_MODULE, m) {
    using namespace fenchel;
    m.def("runs_x86_64_v3", &runs_x86_64_v3);

    const auto exact = [](const char *name) { return nb::arg(name).noconvert(); };
    nb::class_<Lines>(m, "Lines")
        .def(nb::init<Matrix<double>>(), exact("array"))
        .def(nb::init<Matrix<float>>(), exact("array"))
        .def(nb::init<Vector<int>, Vector<int>, Vector<double>, Index>(), exact("indptr"), exact("indices"), exact("data"), "width"_a)
        .def(nb::init<Vector<Index>, Vector<Index>, Vector<double>, Index>(), exact("indptr"), exact("indices"), exact("data"), "width"_a)
        .def(nb::init<Vector<int>, Vector<int>, Vector<float>, Index>(), exact("indptr"), exact("indices"), exact("data"), "width"_a)
        .def(nb::init<Vector<Index>, Vector<Index>, Vector<float>, Index>(), exact("indptr"), exact("indices"), exact("data"), "width"_a)
        .def_prop_ro("has_duplicates", &Lines::has_duplicates)
        .def("gather", &gather_lines, "w"_a, "bound"_a, "threads"_a)
        .def("scatter", &scatter_lines, "a"_a, "bound"_a, "threads"_a)
        .def("norms_along", &norms_along, "p"_a, "s"_a)
        .def("norms_across", &norms_across, "p"_a, "s"_a);

    bind_plain_loss<Hinge>(m, "Hinge");
    bind_loss_with_parameter<SmoothedHinge>(m, "SmoothedHinge");
    bind_plain_loss<SquaredHinge>(m, "SquaredHinge");
    bind_plain_loss<Logistic>(m, "Logistic");
    bind_plain_loss<Exponential>(m, "Exponential");
    bind_plain_loss<Squared>(m, "Squared");
    bind_loss_with_parameter<Pinball>(m, "Pinball");
    bind_loss_with_parameter<EpsilonInsensitive>(m, "EpsilonInsensitive");
    bind_loss_with_parameter<SquaredEpsilonInsensitive>(m, "SquaredEpsilonInsensitive");
    bind_loss_with_parameter<Huber>(m, "Huber");

    m.def("ascend", &ascend_rows, "loss"_a, "rows"_a, "y"_a, "s"_a, "squared_norm"_a, "order"_a, exact("alpha"), exact("u"),
          "mu"_a, "threshold"_a, "inverse_rho"_a, "W"_a, "b"_a);
    m.def("total_variation", [](Vector<double> y, double lam) {
        Result out(y.size());
        {
            nb::gil_scoped_release release;
            total_variation(y.data(), y.size(), lam, out.data);
        }
        return out.array;
    }, "y"_a, "lam"_a);
    m.def("first_nonfinite", [](Vector<double> x, Index threads) {
        nb::gil_scoped_release release;
        return first_nonfinite(x.data(), Index(x.size()), threads);
    }, exact("x"), "threads"_a);
    m.def("first_nonfinite", [](Vector<float> x, Index threads) {
        nb::gil_scoped_release release;
        return first_nonfinite(x.data(), Index(x.size()), threads);
    }, exact("x"), "threads"_a);
    m.def("parse_svmlight", &parse_svmlight, "chunk"_a, "first_line"_a);
}
