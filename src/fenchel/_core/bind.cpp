// Arrays in, arrays out, the GIL released in between. Only bind.hpp and the bind*.cpp know nanobind.
#include "bind.hpp"

#include <nanobind/stl/optional.h>

#include <optional>

#include "bounds.hpp"
#include "products.hpp"
#include "subset.hpp"
#include "svmlight.hpp"

namespace fenchel {

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

Output norms_along(const Lines &A, double p, std::optional<Vector<double>> s) {
    if (s) check_size(s->size(), A.width(), "the weights");
    Result out(A.lines());
    {
        nb::gil_scoped_release release;
        A.visit([&](const auto &M) { line_norms(M, p, s ? s->data() : nullptr, out.data); });
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

using Which = Vector<Index>;

void check_lines(const Lines &A, const Which &which) {
    const Index lines = A.lines(), *line = which.data();
    bool inside = true;
    for (size_t k = 0; k < which.size(); ++k) inside &= 0 <= line[k] && line[k] < lines;
    if (!inside) throw std::invalid_argument("which names a line that does not exist");
}

Output gather_which(const Lines &A, Which which, Vector<double> w, Index threads) {
    check_size(w.size(), A.width(), "the vector");
    check_lines(A, which);
    Result out(which.size());
    nb::gil_scoped_release release;
    A.visit([&](const auto &M) { gather_some(M, which.data(), which.size(), w.data(), out.data, threads); });
    return out.array;
}

Output scatter_which(const Lines &A, Which which, Vector<double> a, std::optional<Vector<double>> p, Index threads) {
    check_size(a.size(), which.size(), "the coefficients");
    if (p) check_size(p->size(), A.width(), "the vector");
    check_lines(A, which);
    Result out(A.width());
    nb::gil_scoped_release release;
    A.visit([&](const auto &M) { scatter_some(M, which.data(), which.size(), a.data(), p ? p->data() : nullptr, out.data, threads); });
    return out.array;
}

Output squares_which(const Lines &A, Which which, Vector<double> a) {
    check_size(a.size(), which.size(), "the coefficients");
    check_lines(A, which);
    Result out(A.width());
    nb::gil_scoped_release release;
    A.visit([&](const auto &M) { squares_some(M, which.data(), which.size(), a.data(), out.data); });
    return out.array;
}

Output energy_which(const Lines &A, Which which, Vector<double> d) {
    check_size(d.size(), A.width(), "the weights");
    check_lines(A, which);
    Result out(which.size());
    nb::gil_scoped_release release;
    A.visit([&](const auto &M) { energy_some(M, which.data(), which.size(), d.data(), out.data); });
    return out.array;
}

auto gram_which(const Lines &A, Which which, Vector<double> a) {
    check_size(a.size(), which.size(), "the coefficients");
    check_lines(A, which);
    Result out(A.width() * A.width());
    nb::gil_scoped_release release;
    A.visit([&](const auto &M) { gram_some(M, which.data(), which.size(), a.data(), out.data); });
    return out.array;
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
        .def("respond", [](const L &l, V z, V y, V s, V c, double tau) {
            for (const Index size : {Index(y.size()), Index(s.size()), Index(c.size())}) check_size(size, z.size(), "a vector over the samples");
            Result a(z.size()), h(z.size());
            Totals sums;
            {
                nb::gil_scoped_release release;
                sums = respond_all(l, z.data(), y.data(), s.data(), c.data(), tau, z.size(), a.data, h.data);
            }
            return std::make_tuple(a.array, h.array, sums.loss, sums.gap);
        })
        .def("slope_along", [](const L &l, V z, V dz, V y, V s, V c, double tau, double t) {
            for (const Index size : {Index(dz.size()), Index(y.size()), Index(s.size()), Index(c.size())}) check_size(size, z.size(), "a vector over the samples");
            nb::gil_scoped_release release;
            const auto [slope, bend] = slope_along(l, z.data(), dz.data(), y.data(), s.data(), c.data(), tau, t, z.size());
            return std::make_tuple(slope, bend);
        })
        .def("gap_sum", [](const L &l, V z, V y, V s, V a) {
            for (const Index size : {Index(y.size()), Index(s.size()), Index(a.size())}) check_size(size, z.size(), "a vector over the samples");
            nb::gil_scoped_release release;
            return gap_sum(l, z.data(), y.data(), s.data(), a.data(), z.size());
        })
        .def("bound_values", [](const L &l, V z, V absolute, double relative, double underflow, double input, V y, V s, double smoothness, double lipschitz) {
            for (const Index size : {Index(absolute.size()), Index(y.size()), Index(s.size())}) check_size(size, z.size(), "a vector over the samples");
            Result error(z.size());
            std::array<double, 2> sums;
            {
                nb::gil_scoped_release release;
                sums = bound_values(l, z.data(), absolute.data(), {relative, underflow, input}, y.data(), s.data(), smoothness, lipschitz, z.size(), error.data);
            }
            return std::make_tuple(sums[0], sums[1], error.array);
        })
        .def("bound_conjugates", [](const L &l, V a, V at_zero, V y, V s, double unit) {
            for (const Index size : {Index(at_zero.size()), Index(y.size()), Index(s.size())}) check_size(size, a.size(), "a vector over the samples");
            nb::gil_scoped_release release;
            const auto [value, size] = bound_conjugates(l, a.data(), at_zero.data(), y.data(), s.data(), unit, a.size());
            return std::make_tuple(value, size);
        })
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
#ifdef NDEBUG
    // What Python itself never frees (locals of daemon threads, tracebacks that are kept) is no leak of ours.
    nb::set_leak_warnings(false);
#endif
    m.def("runs_x86_64_v3", &runs_x86_64_v3);

    const auto exact = [](const char *name) { return nb::arg(name).noconvert(); };
    nb::class_<Lines>(m, "Lines")
        .def(nb::init<Matrix<double>>(), exact("array"))
        .def(nb::init<Matrix<float>>(), exact("array"))
        .def(nb::init<Vector<int>, Vector<int>, Vector<double>, Index, bool>(), exact("indptr"), exact("indices"), exact("data"), "width"_a, "checked"_a = false)
        .def(nb::init<Vector<Index>, Vector<Index>, Vector<double>, Index, bool>(), exact("indptr"), exact("indices"), exact("data"), "width"_a, "checked"_a = false)
        .def(nb::init<Vector<int>, Vector<int>, Vector<float>, Index, bool>(), exact("indptr"), exact("indices"), exact("data"), "width"_a, "checked"_a = false)
        .def(nb::init<Vector<Index>, Vector<Index>, Vector<float>, Index, bool>(), exact("indptr"), exact("indices"), exact("data"), "width"_a, "checked"_a = false)
        .def_prop_ro("has_duplicates", &Lines::has_duplicates)
        .def("gather", &gather_lines, "w"_a, "bound"_a, "threads"_a)
        .def("scatter", &scatter_lines, "a"_a, "bound"_a, "threads"_a)
        .def("gather_some", &gather_which, exact("which"), "w"_a, "threads"_a)
        .def("scatter_some", &scatter_which, exact("which"), "a"_a, "p"_a.none(), "threads"_a)
        .def("gram_some", &gram_which, exact("which"), "a"_a)
        .def("energy_some", &energy_which, exact("which"), "d"_a)
        .def("squares_some", &squares_which, exact("which"), "a"_a)
        .def("norms_along", &norms_along, "p"_a, "s"_a.none())
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

    bind_approx(m);
    bind_ascent(m);
    bind_gradient(m);
    bind_sgd(m);
    bind_total_variation(m);
    bind_wide(m);
    m.def("bound_products", [](Vector<double> a, Vector<double> z, Vector<double> error, Vector<double> s) {
        for (const Index size : {Index(z.size()), Index(error.size()), Index(s.size())}) check_size(size, a.size(), "a vector over the samples");
        nb::gil_scoped_release release;
        const auto [sum, size, doubt] = bound_products(a.data(), z.data(), error.data(), s.data(), a.size());
        return std::make_tuple(sum, size, doubt);
    }, exact("a"), exact("z"), exact("error"), exact("s"));
    m.def("sum_of_squares", [](Vector<double> x) { return sum_of_squares(x.data(), Index(x.size())); }, exact("x"));
    m.def("look_at_entries", [](Vector<double> x, Index threads) {
        nb::gil_scoped_release release;
        const Entries found = look_at_entries(x.data(), Index(x.size()), threads);
        return std::make_tuple(found.first_nonfinite, found.largest);
    }, exact("x"), "threads"_a);
    m.def("look_at_entries", [](Vector<float> x, Index threads) {
        nb::gil_scoped_release release;
        const Entries found = look_at_entries(x.data(), Index(x.size()), threads);
        return std::make_tuple(found.first_nonfinite, found.largest);
    }, exact("x"), "threads"_a);
    m.def("parse_svmlight", &parse_svmlight, "chunk"_a, "first_line"_a);
    bind_blocks(m);
    bind_descent(m);
}
