// Arrays in, arrays out, the GIL released in between. Only the files of this folder use nanobind.
#include "bind/bind.hpp"

#include <nanobind/stl/optional.h>

#include <optional>

#include "io/svmlight.hpp"
#include "linalg/products.hpp"
#include "linalg/subset.hpp"
#include "losses/bounds.hpp"
#include "losses/shift.hpp"
#include "newton/few_columns.hpp"

namespace fenchel {

using Product = std::tuple<Output, Output, Index>;

// product(matrix, vector, out, error, threads) -> depth, for `given` numbers in and `made` out.
template <class F>
Product bounded_product(const Lines &A, Vector<double> w, Index given, Index made, bool bound, Index threads, F &&product) {
    check_size(w.size(), given, "the vector");
    Result out(made), error(bound ? made : 0);
    Index depth;
    {
        nb::gil_scoped_release release;
        depth = A.visit([&](const auto &M) { return product(M, w.data(), out.data, bound ? error.data : nullptr, threads); });
    }
    return {out.array, error.array, depth};
}

Product gather_lines(const Lines &A, Vector<double> w, bool bound, Index threads) {
    return bounded_product(A, w, A.width(), A.lines(), bound, threads, [](const auto &...arguments) { return gather(arguments...); });
}

Product scatter_lines(const Lines &A, Vector<double> a, bool bound, Index threads) {
    return bounded_product(A, a, A.lines(), A.width(), bound, threads, [](const auto &...arguments) { return scatter(arguments...); });
}

// f(matrix, out) without the GIL, for a result of `size` numbers.
template <class F>
Output result_of(const Lines &A, Index size, F &&f) {
    Result out(size);
    nb::gil_scoped_release release;
    A.visit([&](const auto &M) { f(M, out.data); });
    return out.array;
}

Output norms_along(const Lines &A, double p, std::optional<Vector<double>> s) {
    if (s) check_size(s->size(), A.width(), "the weights");
    return result_of(A, A.lines(), [&](const auto &M, double *out) { line_norms(M, p, s ? s->data() : nullptr, out); });
}

Output norms_across(const Lines &A, double p, Vector<double> s) {
    check_size(s.size(), A.lines(), "the weights");
    return result_of(A, A.width(), [&](const auto &M, double *out) { across_norms(M, p, s.data(), out); });
}

using Which = Vector<Index>;

void check_lines(const Lines &A, const Which &which) { check_within(which, A.lines(), "which names a line that does not exist"); }

Output gather_which(const Lines &A, Which which, Vector<double> w, Index threads) {
    check_size(w.size(), A.width(), "the vector");
    check_lines(A, which);
    return result_of(A, which.size(), [&](const auto &M, double *out) { gather_some(M, which.data(), which.size(), w.data(), out, threads); });
}

Output scatter_which(const Lines &A, Which which, Vector<double> a, std::optional<Vector<double>> p, Index threads) {
    check_size(a.size(), which.size(), "the coefficients");
    if (p) check_size(p->size(), A.width(), "the vector");
    check_lines(A, which);
    const double *vector = p ? p->data() : nullptr;
    return result_of(A, A.width(), [&](const auto &M, double *out) { scatter_some(M, which.data(), which.size(), a.data(), vector, out, threads); });
}

Output squares_which(const Lines &A, Which which, Vector<double> a) {
    check_size(a.size(), which.size(), "the coefficients");
    check_lines(A, which);
    return result_of(A, A.width(), [&](const auto &M, double *out) { squares_some(M, which.data(), which.size(), a.data(), out); });
}

Output energy_which(const Lines &A, Which which, Vector<double> d) {
    check_size(d.size(), A.width(), "the weights");
    check_lines(A, which);
    return result_of(A, which.size(), [&](const auto &M, double *out) { energy_some(M, which.data(), which.size(), d.data(), out); });
}

Output gram_which(const Lines &A, Which which, Vector<double> a) {
    check_size(a.size(), which.size(), "the coefficients");
    check_lines(A, which);
    return result_of(A, A.width() * A.width(), [&](const auto &M, double *out) { gram_some(M, which.data(), which.size(), a.data(), out); });
}

template <class F>
Output over_samples(std::initializer_list<size_t> sizes, F &&f) {
    const Index size = Index(*sizes.begin());
    check_sizes(sizes, size, "a vector over the samples");
    Result out(size);
    for (Index i = 0; i < size; ++i) out.data[i] = f(i);
    return out.array;
}

// The rows of [X, column], as doubles; without the last column if it is 0.
std::vector<double> dense_rows(const Lines &A, double column) {
    const Index n = A.lines(), width = A.width(), d = width + (column != 0);
    std::vector<double> rows(n * d, 0.0);
    A.visit([&](const auto &M) {
        for (Index i = 0; i < n; ++i) {
            const auto x = M.line(i);
            for (Index k = 0; k < x.size; ++k) rows[i * d + x.index(k)] = static_cast<double>(x.value[k]);
            if (column != 0) rows[i * d + width] = column;
        }
    });
    return rows;
}

// Newton steps from w around the centre c: w, c, z, a, v, tau, P, the gap, the steps made, and whether they get no further.
template <class L>
auto newton_steps(const L &loss, const Lines &A, double column, Vector<double> y, Vector<double> s, Vector<double> ridge, Vector<double> low, Vector<double> high,
                  Vector<double> w, Vector<double> c, const NewtonRequest &request) {
    const Index n = A.lines(), d = A.width() + (column != 0);
    check_sizes({y.size(), s.size(), low.size(), high.size(), c.size()}, n, "a vector over the samples");
    check_sizes({ridge.size(), w.size()}, d, "a vector over the columns");
    Result weights(d), centre(n), z(n), a(n), v(d);
    NewtonOutcome found;
    {
        nb::gil_scoped_release release;
        std::copy(w.data(), w.data() + d, weights.data);
        std::copy(c.data(), c.data() + n, centre.data);
        const std::vector<double> rows = dense_rows(A, column);
        found = FewColumns<L>(loss, rows.data(), n, d, y.data(), s.data(), ridge.data(), low.data(), high.data(), request, weights.data, centre.data, z.data, a.data,
                              v.data)
                    .run();
    }
    return std::make_tuple(weights.array, centre.array, z.array, a.array, v.array, found.tau, found.primal, found.gap, found.made, found.stuck);
}

template <class L>
nb::class_<L> bind_loss(nb::module_ &m, const char *name) {
    using V = Vector<double>;
    return nb::class_<L>(m, name)
        .def("value", [](const L &l, V z, V y) { return over_samples({z.size(), y.size()}, [&](Index i) { return l.value(z(i), y(i)); }); })
        .def("derivative", [](const L &l, V z, V y) { return over_samples({z.size(), y.size()}, [&](Index i) { return l.derivative(z(i), y(i)); }); })
        .def("conjugate", [](const L &l, V u, V y) { return over_samples({u.size(), y.size()}, [&](Index i) { return l.conjugate(u(i), y(i)); }); })
        .def("respond",
             [](const L &l, V z, V y, V s, V c, double tau) {
                 check_sizes({y.size(), s.size(), c.size()}, z.size(), "a vector over the samples");
                 Result a(z.size()), h(z.size());
                 Totals sums;
                 {
                     nb::gil_scoped_release release;
                     sums = respond_all(l, z.data(), y.data(), s.data(), c.data(), tau, z.size(), a.data, h.data);
                 }
                 return std::make_tuple(a.array, h.array, sums.loss, sums.gap);
             })
        .def("slope_along",
             [](const L &l, V z, V dz, V y, V s, V c, double tau, double t) {
                 check_sizes({dz.size(), y.size(), s.size(), c.size()}, z.size(), "a vector over the samples");
                 nb::gil_scoped_release release;
                 const auto [slope, curvature] = slope_along(l, z.data(), dz.data(), y.data(), s.data(), c.data(), tau, t, z.size());
                 return std::make_tuple(slope, curvature);
             })
        .def("gap_sum",
             [](const L &l, V z, V y, V s, V a) {
                 check_sizes({y.size(), s.size(), a.size()}, z.size(), "a vector over the samples");
                 nb::gil_scoped_release release;
                 return gap_sum(l, z.data(), y.data(), s.data(), a.data(), z.size());
             })
        .def("bound_values",
             [](const L &l, V z, V absolute, double relative, double underflow, double input, V y, V s, double smoothness, double lipschitz) {
                 check_sizes({absolute.size(), y.size(), s.size()}, z.size(), "a vector over the samples");
                 Result error(z.size());
                 std::array<double, 2> sums;
                 {
                     nb::gil_scoped_release release;
                     sums = bound_values(l, z.data(), absolute.data(), {relative, underflow, input}, y.data(), s.data(), smoothness, lipschitz, z.size(),
                                         error.data);
                 }
                 return std::make_tuple(sums[0], sums[1], error.array);
             })
        .def("bound_conjugates",
             [](const L &l, V a, V at_zero, V y, V s, double unit) {
                 check_sizes({at_zero.size(), y.size(), s.size()}, a.size(), "a vector over the samples");
                 nb::gil_scoped_release release;
                 const auto [value, size] = bound_conjugates(l, a.data(), at_zero.data(), y.data(), s.data(), unit, a.size());
                 return std::make_tuple(value, size);
             })
        .def(
            "best_shift",
            [](const L &l, V z, V y, V s, std::optional<V> f, double unit, double smoothness, double zero, double farthest) {
                check_sizes({y.size(), s.size(), f ? f->size() : z.size()}, z.size(), "a vector over the samples");
                nb::gil_scoped_release release;
                return BestShift<L>(l, z.data(), y.data(), s.data(), f ? f->data() : nullptr, z.size(), {unit, smoothness, zero, farthest}).run();
            },
            exact("z"), exact("y"), exact("s"), "f"_a.none(), "unit"_a, "smoothness"_a, "zero"_a, "farthest"_a)
        .def("newton_steps", &newton_steps<L>, exact("lines"), "column"_a, exact("y"), exact("s"), exact("ridge"), exact("low"), exact("high"), exact("w"),
             exact("c"), "request"_a)
        .def("dual_step", [](const L &l, V a, V z, V q, V y) {
            return over_samples({a.size(), z.size(), q.size(), y.size()}, [&](Index i) { return l.dual_step(a(i), z(i), q(i), y(i)); });
        });
}

template <class L>
void bind_plain_loss(nb::module_ &m, const char *name) {
    bind_loss<L>(m, name).def(nb::init<>());
}
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
    return std::make_tuple(owned(std::move(rows.labels)), owned(std::move(rows.lengths)), owned(std::move(rows.indices)), owned(std::move(rows.values)));
}

template <class T>
std::tuple<Index, double> check_entries_of(Vector<T> x, Index threads) {
    nb::gil_scoped_release release;
    const EntryCheck found = check_entries(x.data(), Index(x.size()), threads);
    return {found.first_nonfinite, found.largest};
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
    // Objects that Python never frees at exit (module constants, locals of daemon threads) are not leaks of this module.
    nb::set_leak_warnings(false);
#endif
    m.def("runs_x86_64_v3", &runs_x86_64_v3);

    nb::class_<Lines>(m, "Lines")
        .def(nb::init<Matrix<double>>(), exact("array"))
        .def(nb::init<Matrix<float>>(), exact("array"))
        .def(nb::init<Vector<int>, Vector<int>, Vector<double>, Index, bool>(), exact("indptr"), exact("indices"), exact("data"), "width"_a,
             "checked"_a = false)
        .def(nb::init<Vector<Index>, Vector<Index>, Vector<double>, Index, bool>(), exact("indptr"), exact("indices"), exact("data"), "width"_a,
             "checked"_a = false)
        .def(nb::init<Vector<int>, Vector<int>, Vector<float>, Index, bool>(), exact("indptr"), exact("indices"), exact("data"), "width"_a, "checked"_a = false)
        .def(nb::init<Vector<Index>, Vector<Index>, Vector<float>, Index, bool>(), exact("indptr"), exact("indices"), exact("data"), "width"_a,
             "checked"_a = false)
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

    nb::class_<NewtonRequest>(m, "NewtonRequest")
        .def("__init__",
             [](NewtonRequest *self, double tau, double least_tau, double tau_factor, double tol, double atol, Index steps, Index patience, bool free_intercept,
                bool quadratic) { new (self) NewtonRequest{tau, least_tau, tau_factor, tol, atol, steps, patience, free_intercept, quadratic}; },
             "tau"_a, "least_tau"_a, "tau_factor"_a, "tol"_a, "atol"_a, "steps"_a, "patience"_a, "free_intercept"_a, "quadratic"_a);
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
    bind_interpolation(m);
    bind_primal_gradient(m);
    bind_gram(m);
    bind_denoise(m);
    bind_linalg(m);
    bind_margin(m);
    bind_sparse(m);
    m.def(
        "bound_products",
        [](Vector<double> a, Vector<double> z, Vector<double> error, Vector<double> s) {
            check_sizes({z.size(), error.size(), s.size()}, a.size(), "a vector over the samples");
            nb::gil_scoped_release release;
            const auto [sum, size, error_sum] = bound_products(a.data(), z.data(), error.data(), s.data(), a.size());
            return std::make_tuple(sum, size, error_sum);
        },
        exact("a"), exact("z"), exact("error"), exact("s"));
    m.def("sum_of_squares", [](Vector<double> x) { return sum_of_squares(x.data(), Index(x.size())); }, exact("x"));
    m.def("check_entries", &check_entries_of<double>, exact("x"), "threads"_a);
    m.def("check_entries", &check_entries_of<float>, exact("x"), "threads"_a);
    m.def("parse_svmlight", &parse_svmlight, "chunk"_a, "first_line"_a);
    bind_multiclass(m);
}
