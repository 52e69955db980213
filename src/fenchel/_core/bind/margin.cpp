// Passes of margin maximisation for Python.
#include "ascent/margin.hpp"
#include "bind/bind.hpp"

namespace fenchel {

namespace {

auto tilted_rows(const Lines &rows, Vector<double> w, Vector<double> factor, Vector<double> prior, bool logistic, Index threads) {
    check_size(w.size(), rows.width(), "w");
    check_sizes({factor.size(), prior.size()}, rows.lines(), "a vector over the samples");
    if (threads < 1) throw std::invalid_argument("threads must be at least 1");
    Result z(rows.lines()), v(rows.width());
    double shift = 0;
    {
        nb::gil_scoped_release release;
        shift = rows.visit([&](const auto &A) {
            return logistic ? tilted_sum<LogisticTail>(A, w.data(), factor.data(), prior.data(), z.data, v.data, threads)
                            : tilted_sum<ExponentialTail>(A, w.data(), factor.data(), prior.data(), z.data, v.data, threads);
        });
    }
    return std::make_tuple(z.array, v.array, shift);
}

void check_blocks(const Mutable &sums, size_t n) { check_size(sums.size(), sampling_blocks(Index(n)), "the sums of the blocks"); }

double move_samples(Vector<double> k, double momentum, double step, Mutable h, Mutable z, Mutable sums) {
    check_sizes({h.size(), z.size()}, k.size(), "a vector over the samples");
    check_blocks(sums, k.size());
    nb::gil_scoped_release release;
    return move_scores(k.data(), momentum, step, h.data(), z.data(), sums.data(), Index(k.size()));
}

Index draw_sample(Vector<double> z, double shift, Mutable sums, double u) {
    if (z.size() == 0) throw std::invalid_argument("there is no sample to draw");
    check_blocks(sums, z.size());
    return draw_tilted(z.data(), shift, sums.data(), Index(z.size()), u);
}

}  // namespace

void bind_margin(nb::module_ &m) {
    m.attr("SAMPLING_BLOCK") = sampling_block;
    m.def("tilted_rows", &tilted_rows, "rows"_a, exact("w"), exact("factor"), exact("prior"), "logistic"_a, "threads"_a);
    m.def("move_samples", &move_samples, exact("k"), "momentum"_a, "step"_a, exact("h"), exact("z"), exact("sums"));
    m.def("draw_sample", &draw_sample, exact("z"), "shift"_a, exact("sums"), "u"_a);
}

}  // namespace fenchel
