// The Primal Gradient Solver for Python: one pass over some samples.
#include <nanobind/stl/optional.h>

#include <optional>

#include "ascent/gram.hpp"
#include "bind/bind.hpp"

namespace fenchel {

namespace {

using Table = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

void check_table(const Table &table, Index rows, Index columns, const char *what) {
    check_size(Index(table.shape(0)), rows, what);
    check_size(Index(table.shape(1)), columns, what);
}

double *data_of(const std::optional<Table> &table) { return table ? table->data() : nullptr; }

// The options that all passes of a run share.
struct GradientRule {
    double p, offset, constant, intercept_step, intercept_limit;
    bool eager;
};

// The arrays of a pass: targets and weights of the lines, vectors of the models side by side.
struct GradientArrays {
    Vector<double> y, s;
    Vector<Index> order;
    double W;
    Vector<double> lam;
    std::optional<Vector<double>> classes;
    Vector<double> radius;
    Index batch, t;
    bool averages;
    Table v;
    std::optional<Table> w, held;
    Table numbers, sums;
    Index draw;
    std::optional<Table> drawn, each;

    void check(const GradientRule &rule, Index lines, Index width) const {
        const Index models = Index(lam.size()), size = width + 1;
        check_sizes({y.size(), s.size()}, lines, "a vector over the samples");
        check_within(order, lines, "order names a sample that does not exist");
        if (batch < 1 || !(W > 0) || models < 1 || w.has_value() != (rule.p < 2) || held.has_value() != (averages && rule.p < 2))
            throw std::invalid_argument("a pass needs a model, a batch, weights of a positive mean, and w if p < 2");
        if (classes) check_size(classes->size(), models, "classes");
        check_size(radius.size(), models, "radius");
        check_table(v, size, averages && rule.p == 2 ? 2 * models : models, "v");
        for (const auto &table : {w, held})
            if (table) check_table(*table, size, models, "w or held");
        if (drawn) check_table(*drawn, size + 1, models, "drawn");
        if (each) check_table(*each, averages ? (Index(order.size()) + 3) / 4 : 0, 2 * models, "each");
        check_table(numbers, 4, models, "numbers");
        check_table(sums, 6, models, "sums");
    }

    // One pass over rows; the number of steps so far.
    template <class Rows>
    Index pass(const GradientRule &rule, const Loss &loss, const Rows &rows, double *squared) const {
        const Index models = Index(lam.size());
        const GradientOptions options{
            lam.data(), radius.data(), classes ? classes->data() : nullptr, models, batch, rule.p, rule.offset, rule.constant, rule.intercept_step,
            rule.intercept_limit, W, rule.eager};
        const auto number = [&](Index k) { return numbers.data() + k * models; };
        const auto sum = [&](Index k) { return sums.data() + k * models; };
        GradientState state{v.data(), data_of(w), data_of(held), averages, data_of(drawn), number(0), number(1), number(2), number(3),
                            sum(0),   sum(1),     sum(2),        sum(3),   sum(4),         sum(5),    t,         draw,      squared,   data_of(each)};
        const auto run = [&]<class Phi>(auto fixed, const Phi &phi) {
            PrimalGradient<decltype(fixed)::value, Phi, Rows>(phi, rows, y.data(), s.data(), options, state).pass(order.data(), Index(order.size()));
        };
        const bool plain = batch == 1 && rule.p == 2, single = plain && models == 1;
        std::visit(
            [&](const auto &phi) {
                if (single) return run(std::integral_constant<Index, 1>{}, phi);
                const AnyLoss any(phi);
                if constexpr (!std::is_same_v<Rows, GramRows>) {
                    if (plain && averages) return with_few(models, [&](auto fixed) { run(fixed, any); });
                }
                run(std::integral_constant<Index, 0>{}, any);
            },
            loss);
        return state.t;
    }
};

}  // namespace

void bind_primal_gradient(nb::module_ &m) {
    nb::class_<GradientRule>(m, "GradientRule")
        .def(
            "__init__",
            [](GradientRule *self, double p, double offset, double constant, double intercept_step, double intercept_limit, bool eager) {
                if (!(p >= 1 && p <= 2) || (eager && p < 2)) throw std::invalid_argument("p must lie in [1, 2], and be 2 for eager projections");
                new (self) GradientRule{p, offset, constant, intercept_step, intercept_limit, eager};
            },
            "p"_a, "offset"_a, "constant"_a, "intercept_step"_a, "intercept_limit"_a, "eager"_a);
    m.def(
        "primal_gradient",
        [](const GradientRule &rule, const Loss &loss, const Lines &lines, Vector<double> y, Vector<double> s, Vector<Index> order, double W,
           Vector<double> lam, std::optional<Vector<double>> classes, Vector<double> radius, Index batch, Index t, bool averages, Table v,
           std::optional<Table> w, std::optional<Table> held, Table numbers, Table sums, Index draw, std::optional<Table> drawn, std::optional<Table> each) {
            const GradientArrays arrays{y, s, order, W, lam, classes, radius, batch, t, averages, v, w, held, numbers, sums, draw, drawn, each};
            arrays.check(rule, lines.lines(), lines.width());
            nb::gil_scoped_release release;
            return lines.visit([&](const auto &rows) { return arrays.pass(rule, loss, rows, nullptr); });
        },
        "rule"_a, "loss"_a, "lines"_a, exact("y"), exact("s"), exact("order"), "W"_a, exact("lam"), "classes"_a.none(), exact("radius"), "batch"_a, "t"_a,
        "averages"_a, exact("v"), "w"_a.none(), "held"_a.none(), exact("numbers"), exact("sums"), "draw"_a, "drawn"_a.none(), "each"_a.none());
    m.def(
        "kernel_gradient",
        [](const GradientRule &rule, const Loss &loss, Matrix<double> rows, Vector<Index> place, Vector<double> y, Vector<double> s, Vector<Index> order,
           double W, Vector<double> lam, Vector<double> radius, Mutable squared, Index batch, Index t, bool averages, Table v, Table numbers, Table sums,
           Index draw, std::optional<Table> drawn) {
            if (rule.p != 2 || rule.constant != 0) throw std::invalid_argument("functions of a kernel have p = 2 and no constant column");
            const GradientArrays arrays{y, s, order, W, lam, {}, radius, batch, t, averages, v, {}, {}, numbers, sums, draw, drawn, {}};
            const GramRows gram{rows.data(), Index(rows.shape(0)), Index(rows.shape(1)), place.data()};
            check_size(place.size(), gram.lines, "place");
            check_within(place, gram.width, "place names a column that does not exist");
            check_size(squared.size(), Index(lam.size()), "squared");
            arrays.check(rule, gram.lines, gram.width);
            nb::gil_scoped_release release;
            return arrays.pass(rule, loss, gram, squared.data());
        },
        "rule"_a, "loss"_a, exact("rows"), exact("place"), exact("y"), exact("s"), exact("order"), "W"_a, exact("lam"), exact("radius"), exact("squared"),
        "batch"_a, "t"_a, "averages"_a, exact("v"), exact("numbers"), exact("sums"), "draw"_a, "drawn"_a.none());
}

}  // namespace fenchel
