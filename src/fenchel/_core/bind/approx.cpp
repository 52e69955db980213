// Accelerated coordinate descent for Python: one pass over blocks of weights, or over samples, in a given order.
#include "ascent/approx.hpp"
#include "bind/bind.hpp"

namespace fenchel {

using Order = Vector<Index>;
// theta of the next step, theta^2 of the last one, and what was noted on the way: the gap, and |v_g| / threshold_g or the loss
using Passed = std::tuple<double, double, double, double>;

namespace {

void check_order(const Order &order, Index blocks) {
    for (size_t k = 0; k < order.size(); ++k)
        if (order.data()[k] < 0 || order.data()[k] >= blocks) throw std::invalid_argument("order names a block that does not exist");
}

void check_sequence(double theta) {
    if (!(theta > 0 && theta <= 1)) throw std::invalid_argument("theta must lie in (0, 1]");
}

void check_blocks(const Vector<Index> &column, const Vector<Index> &first, Index width) {
    if (first.size() == 0 || first(0) != 0 || first(first.size() - 1) != Index(column.size()))
        throw std::invalid_argument("blocks must begin one after the other");
    for (size_t g = 0; g + 1 < first.size(); ++g)
        if (first(g) > first(g + 1)) throw std::invalid_argument("blocks must begin one after the other");
    for (size_t k = 0; k < column.size(); ++k)
        if (column(k) < 0 || column(k) >= width) throw std::invalid_argument("a block names a column that does not exist");
}

Passed approx_weights(const Loss &loss, const Lines &columns, Vector<Index> column, Vector<Index> first, Vector<double> curvature, Vector<double> threshold,
                      double ridge, bool intercept, Vector<double> y, Vector<double> share, Order order, double theta, bool accelerated, Mutable images,
                      Mutable z, Mutable u) {
    const Index count = Index(first.size()) - 1, blocks = count + intercept, d = columns.lines(), n = columns.width();
    check_blocks(column, first, d);
    check_size(curvature.size(), blocks, "curvature");
    check_size(threshold.size(), count, "threshold");
    for (Index size : {Index(y.size()), Index(share.size())}) check_size(size, n, "a vector over the samples");
    check_size(images.size(), 2 * n, "images");
    for (Index size : {Index(z.size()), Index(u.size())}) check_size(size, d + intercept, "a vector over the weights");
    check_order(order, blocks);
    check_sequence(theta);
    nb::gil_scoped_release release;
    const WeightBlocks parts{column.data(), first.data(), curvature.data(), threshold.data(), ridge, count, d, intercept};
    const Targets data{y.data(), share.data(), n};
    Sequence sequence{double(blocks), theta, 0, accelerated};
    const Noted noted = std::visit(
        [&](const auto &phi) {
            return columns.visit([&](const auto &A) {
                return WeightSteps(phi, A, parts, data, Images{images.data()}, z.data(), u.data()).pass(sequence, order.data(), Index(order.size()));
            });
        },
        loss);
    return {sequence.theta, sequence.square, noted.gap, noted.worst};
}

Passed approx_samples(const Loss &loss, const std::variant<Linear, Threshold> &link, const Lines &rows, Vector<double> y, Vector<double> s, Vector<double> q,
                      double scale, Index blocks, Order order, double theta, bool accelerated, Mutable images, Mutable z, Mutable u) {
    const Index n = rows.lines(), d = rows.width();
    for (Index size : {Index(y.size()), Index(s.size()), Index(q.size()), Index(z.size()), Index(u.size())}) check_size(size, n, "a vector over the samples");
    check_size(images.size(), 2 * d, "images");
    if (blocks < 1) throw std::invalid_argument("there must be a block");
    check_order(order, n);
    check_sequence(theta);
    nb::gil_scoped_release release;
    Sequence sequence{double(blocks), theta, 0, accelerated};
    const Noted noted = std::visit(
        [&](const auto &phi, const auto &to) {
            return rows.visit([&](const auto &A) {
                return accelerate_samples(phi, to, A, y.data(), s.data(), q.data(), scale, sequence, order.data(), Index(order.size()), Images{images.data()},
                                          z.data(), u.data());
            });
        },
        loss, link);
    return {sequence.theta, sequence.square, noted.gap, noted.loss};
}

}  // namespace

void bind_approx(nb::module_ &m) {
    const auto exact = [](const char *name) { return nb::arg(name).noconvert(); };
    m.def("approx_weights", &approx_weights, "loss"_a, "columns"_a, exact("column"), exact("first"), exact("curvature"), exact("threshold"), "ridge"_a,
          "intercept"_a, exact("y"), exact("share"), exact("order"), "theta"_a, "accelerated"_a, exact("images"), exact("z"), exact("u"));
    m.def("approx_samples", &approx_samples, "loss"_a, "link"_a, "rows"_a, exact("y"), exact("s"), exact("q"), "scale"_a, "blocks"_a, exact("order"), "theta"_a,
          "accelerated"_a, exact("images"), exact("z"), exact("u"));
}

}  // namespace fenchel
