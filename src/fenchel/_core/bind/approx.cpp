// Accelerated coordinate descent for Python: one pass over blocks of weights, or over samples, in a given order.
#include <nanobind/stl/optional.h>

#include <optional>

#include "ascent/approx.hpp"
#include "bind/bind.hpp"

namespace fenchel {

using Order = Vector<Index>;
// theta of the next step, theta^2 of the last one, and sums of the pass: the gap, and |v_g| / threshold_g or the loss
using Passed = std::tuple<double, double, double, double>;

namespace {

void check_sequence(double theta) {
    if (!(theta > 0 && theta <= 1)) throw std::invalid_argument("theta must lie in (0, 1]");
}

Passed approx_weights(const Loss &loss, const Lines &columns, Vector<Index> column, Vector<Index> first, Vector<double> curvature, Vector<double> threshold,
                      double ridge, bool intercept, Vector<double> y, Vector<double> p, Order order, Index batch, double theta, bool accelerated, Mutable images,
                      Mutable z, Mutable u, std::optional<Mutable> mean) {
    const Index count = Index(first.size()) - 1, blocks = count + intercept, d = columns.lines(), n = columns.width();
    check_groups(column, first, d);
    if (first.size() == 0 || first(0) != 0 || first(count) != Index(column.size())) throw std::invalid_argument("groups must begin one after the other");
    check_size(curvature.size(), blocks, "curvature");
    check_size(threshold.size(), count, "threshold");
    check_sizes({y.size(), p.size()}, n, "a vector over the samples");
    check_size(images.size(), 2 * n, "images");
    check_sizes({z.size(), u.size()}, d + intercept, "a vector over the weights");
    if (mean) check_size(mean->size(), d + intercept, "mean");
    if (batch < 1) throw std::invalid_argument("a step needs a block");
    check_within(order, blocks, "order names a block that does not exist");
    check_sequence(theta);
    nb::gil_scoped_release release;
    const WeightBlocks weights{column.data(), first.data(), curvature.data(), threshold.data(), ridge, count, d, intercept};
    const Targets data{y.data(), p.data(), n};
    Sequence sequence{double(blocks) / double(batch), theta, 0, accelerated};
    const PassSums sums = std::visit(
        [&](const auto &phi) {
            return columns.visit([&](const auto &A) {
                return WeightSteps(phi, A, weights, data, Images{images.data()}, z.data(), u.data(), mean ? mean->data() : nullptr)
                    .pass(sequence, order.data(), Index(order.size()), batch);
            });
        },
        loss);
    return {sequence.theta, sequence.square, sums.gap, sums.worst};
}

Passed approx_samples(const Loss &loss, const std::variant<Linear, Threshold> &link, const Lines &rows, Vector<double> y, Vector<double> s, Vector<double> q,
                      double step, Index blocks, Order order, double theta, bool accelerated, Mutable images, Mutable z, Mutable u) {
    const Index n = rows.lines(), d = rows.width();
    check_sizes({y.size(), s.size(), q.size(), z.size(), u.size()}, n, "a vector over the samples");
    check_size(images.size(), 2 * (d + 1), "images");
    if (blocks < 1) throw std::invalid_argument("there must be a block");
    check_within(order, n, "order names a block that does not exist");
    check_sequence(theta);
    nb::gil_scoped_release release;
    Sequence sequence{double(blocks), theta, 0, accelerated};
    const PassSums sums = std::visit(
        [&](const auto &phi, const auto &to) {
            return rows.visit([&](const auto &A) {
                return accelerate_samples(phi, to, A, {y.data(), s.data(), q.data()}, {step, 0, 0}, sequence, order.data(), Index(order.size()),
                                          Images{images.data()}, z.data(), u.data());
            });
        },
        loss, link);
    return {sequence.theta, sequence.square, sums.gap, sums.loss};
}

}  // namespace

void bind_approx(nb::module_ &m) {
    m.def("approx_weights", &approx_weights, "loss"_a, "columns"_a, exact("column"), exact("first"), exact("curvature"), exact("threshold"), "ridge"_a,
          "intercept"_a, exact("y"), exact("p"), exact("order"), "batch"_a, "theta"_a, "accelerated"_a, exact("images"), exact("z"), exact("u"),
          exact("mean").none());
    m.def("approx_samples", &approx_samples, "loss"_a, "link"_a, "rows"_a, exact("y"), exact("s"), exact("q"), "step"_a, "blocks"_a, exact("order"), "theta"_a,
          "accelerated"_a, exact("images"), exact("z"), exact("u"));
}

}  // namespace fenchel
