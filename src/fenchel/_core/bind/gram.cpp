// Dual ascent on the rows of a Gram matrix, for Python.
#include "ascent/gram.hpp"
#include "ascent/pairs.hpp"

#include "bind/bind.hpp"

namespace fenchel {

using PiecewiseLinear = std::variant<Hinge, Pinball, EpsilonInsensitive>;

void bind_gram(nb::module_ &m) {
    using Order = nb::ndarray<Index, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
    m.def(
        "gram_epoch",
        [](const Loss &loss, Matrix<double> K, Vector<double> y, Vector<double> s, Vector<double> q, double step, double shift, Order order, Mutable alpha,
           Mutable scores, double margin, double least) {
            const Index n = Index(K.shape(0));
            check_size(Index(K.shape(1)), n, "a row of K");
            check_sizes({y.size(), s.size(), q.size(), alpha.size()}, n, "a vector over the samples");
            check_size(Index(scores.size()), n + 1, "scores");
            check_within(order, n, "order names a sample that does not exist");
            nb::gil_scoped_release release;
            const GramRows rows{K.data(), n, n, nullptr};
            const Samples data{y.data(), s.data(), q.data()};
            Linear link;
            const Index steps = Index(order.size());
            const Epoch sums = std::visit(
                [&](const auto &phi) {
                    const EpochOptions<> options{{margin}, 1, 1, least};
                    return ascend(phi, rows, data, link, Scale{step, shift, 0}, order.data(), steps, alpha.data(), SampleScores{scores.data()}, options,
                                  nullptr);
                },
                loss);
            return std::make_tuple(sums.loss, sums.gap, sums.move, sums.kept, sums.path, sums.moves);
        },
        "loss"_a, exact("K"), exact("y"), exact("s"), exact("q"), "step"_a, "shift"_a, exact("order"), exact("alpha"), exact("scores"), "margin"_a, "least"_a);
    m.def(
        "gram_pairs",
        [](const PiecewiseLinear &loss, Matrix<double> K, Vector<double> y, Vector<double> s, double step, Mutable alpha, Mutable scores, Index most,
           double enough) {
            const Index n = Index(K.shape(0));
            check_size(Index(K.shape(1)), n, "a row of K");
            check_sizes({y.size(), s.size(), alpha.size(), scores.size()}, n, "a vector over the samples");
            nb::gil_scoped_release release;
            return std::visit(
                [&](const auto &phi) {
                    PairAscent pairs(phi, K.data(), n, y.data(), s.data(), step, alpha.data(), scores.data());
                    const Index steps = pairs.run(most, enough);
                    return std::make_tuple(steps, pairs.largest(), pairs.smallest());
                },
                loss);
        },
        "loss"_a, exact("K"), exact("y"), exact("s"), "step"_a, exact("alpha"), exact("scores"), "most"_a, "enough"_a);
    m.def(
        "kinks_beside",
        [](const PiecewiseLinear &loss, Vector<double> y, Vector<double> alpha) {
            check_size(Index(alpha.size()), Index(y.size()), "alpha");
            Result above(y.size()), below(y.size());
            std::visit(
                [&](const auto &phi) {
                    for (Index i = 0; i < Index(y.size()); ++i) above.data[i] = up(phi, alpha(i), y(i)).kink, below.data[i] = down(phi, alpha(i), y(i)).kink;
                },
                loss);
            return std::make_tuple(above.array, below.array);
        },
        "loss"_a, exact("y"), exact("alpha"));
}

}  // namespace fenchel
