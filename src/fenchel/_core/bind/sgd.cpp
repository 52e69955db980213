// Stochastic gradient descent for Python: one pass over some samples.
#include <nanobind/stl/optional.h>

#include <optional>

#include "ascent/sgd.hpp"
#include "bind/bind.hpp"

namespace fenchel {

void bind_sgd(nb::module_ &m) {
    m.def(
        "descend",
        [](const Loss &loss, const Lines &lines, Vector<double> y, Vector<double> s, Vector<double> squared_norm, double lam, double W, double constant,
           double radius, Index batch, Vector<Index> order, Index t, Mutable v, std::optional<Mutable> held) {
            check_sizes({y.size(), s.size(), squared_norm.size()}, lines.lines(), "a vector over the samples");
            check_size(v.size(), lines.width() + 1, "v");
            if (held) check_size(held->size(), lines.width() + 1, "held");
            if (batch < 1) throw std::invalid_argument("a batch has at least one sample");
            check_within(order, lines.lines(), "order names a sample that does not exist");
            double *sum = held ? held->data() : nullptr;
            const Samples data{y.data(), s.data(), squared_norm.data()};
            const SgdOptions options{lam, W, constant, radius, batch};
            nb::gil_scoped_release release;
            return std::visit(
                [&](const auto &phi) {
                    return lines.visit(
                        [&](const auto &rows) { return descend(phi, rows, data, options, order.data(), Index(order.size()), t, v.data(), sum); });
                },
                loss);
        },
        "loss"_a, "lines"_a, exact("y"), exact("s"), exact("squared_norm"), "lam"_a, "W"_a, "constant"_a, "radius"_a, "batch"_a, exact("order"), "t"_a,
        exact("v"), "held"_a.none());
}

}  // namespace fenchel
