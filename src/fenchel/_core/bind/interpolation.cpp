// Interpolation for Python: passes of dual ascent (plain and accelerated), mirror descent and the perceptron under interval constraints.
#include <nanobind/stl/optional.h>

#include <numeric>
#include <optional>

#include "ascent/approx.hpp"
#include "bind/bind.hpp"
#include "losses/sets.hpp"

namespace fenchel {

using Rule = std::variant<Within, Mirrored, Corrected>;
using Order = nb::ndarray<Index, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

class Constrained {
  private:
    void check(const Order &order) const { check_within(order, rows_->lines(), "order names a sample that does not exist"); }
    Samples samples() const { return {y_.data(), s_.data(), q_.data()}; }

  public:
    Constrained(const Rule &rule, const Link &link, nb::object rows, Vector<double> s, Vector<double> q, double step, double shift, double W)
        : rule_(rule), link_(link), rows_(nb::cast<const Lines *>(rows)), keep_(rows), s_(s), q_(q), scale_{step, shift, W}, y_(s.size()) {
        check_sizes({s.size(), q.size()}, rows_->lines(), "a vector over the samples");
        check_size(std::visit([](const Ends &ends) { return ends.size; }, rule), rows_->lines(), "a vector of ends");
        std::iota(y_.begin(), y_.end(), 0.0);
    }

    // Sums of distances and of gap terms, each at the time of its sample's visit; and how many multipliers changed.
    std::tuple<double, double, Index> epoch(Order order, Mutable alpha, Mutable u, std::optional<Mutable> total) const {
        check(order);
        check_size(alpha.size(), rows_->lines(), "alpha");
        check_size(u.size(), rows_->width() + 1, "u");
        if (total) check_size(total->size(), rows_->width() + 1, "total");
        double *sum = total ? total->data() : nullptr;
        const Index steps = static_cast<Index>(order.size());
        nb::gil_scoped_release release;
        const Epoch sums = std::visit(
            [&](const auto &rule, auto link) {
                return rows_->visit([&](const auto &rows) {
                    link.begin(u.data(), rows.width);
                    const auto pass = [&](Index *some, Index count) {
                        return ascend(rule, rows, samples(), link, scale_, some, count, alpha.data(), Weights{u.data()}, EpochOptions<>{{infinity}, 1},
                                      nullptr);
                    };
                    return sum ? summed(pass, link, order.data(), steps, u.data(), rows.width, sum) : pass(order.data(), steps);
                });
            },
            rule_, link_);
        return {sums.loss, sums.gap, sums.moves};
    }

    // A pass, and more over the samples with large steps.
    void epoch_again(Order order, Mutable alpha, Mutable u, double damping) const {
        check(order);
        check_size(alpha.size(), rows_->lines(), "alpha");
        check_size(u.size(), rows_->width() + 1, "u");
        if (!(damping > 0.5 && damping <= 1)) throw std::invalid_argument("damping must be above 1/2, and at most 1");
        nb::gil_scoped_release release;
        std::visit(
            [&](const auto &rule, auto link) {
                rows_->visit([&](const auto &rows) {
                    link.begin(u.data(), rows.width);
                    ascend_again(rule, rows, samples(), link, scale_, order.data(), Index(order.size()), alpha.data(), Weights{u.data()}, damping);
                });
            },
            rule_, link_);
    }

    // theta of the next step, and theta^2 of the last one. Without momentum theta stays; `local` > 0: steps from the curvature at hand.
    std::tuple<double, double> accelerate(Order order, double theta, Index blocks, Mutable images, Mutable z, Mutable u, bool momentum, double local,
                                          double least) const {
        check(order);
        check_sizes({z.size(), u.size()}, rows_->lines(), "a vector over the samples");
        check_size(images.size(), 2 * (rows_->width() + 1), "images");
        if (!std::holds_alternative<Within>(rule_)) throw std::invalid_argument("only dual ascent can be accelerated");
        if (blocks < 1 || !(theta > 0 && theta <= 1)) throw std::invalid_argument("there must be a block, and theta in (0, 1]");
        nb::gil_scoped_release release;
        Sequence sequence{double(blocks), theta, 0, momentum};
        std::visit(
            [&](const auto &link) {
                rows_->visit([&](const auto &rows) {
                    accelerate_samples(std::get<Within>(rule_), link, rows, samples(), scale_, sequence, order.data(), Index(order.size()),
                                       Images{images.data()}, z.data(), u.data(), Local{local, least});
                });
            },
            link_);
        return {sequence.theta, sequence.square};
    }

  private:
    // One step at a time, the weights and the intercept before each added to `total`: O(d) per step.
    template <class Pass, class Link>
    static Epoch summed(const Pass &pass, const Link &link, Index *order, Index steps, const double *u, Index width, double *total) {
        Epoch sums;
        for (Index k = 0; k < steps; ++k) {
            for (Index j = 0; j < width; ++j) total[j] += link.weight(u[j]);
            total[width] += u[width];
            const Epoch one = pass(order + k, 1);
            sums.loss += one.loss, sums.gap += one.gap, sums.moves += one.moves;
        }
        return sums;
    }

    Rule rule_;
    Link link_;
    const Lines *rows_;
    nb::object keep_;
    Vector<double> s_, q_;
    Scale scale_;
    std::vector<double> y_;  // the numbers of the samples
};

template <class R>
void bind_rule(nb::module_ &m, const char *name) {
    nb::class_<R>(m, name).def(
        "__init__",
        [](R *self, Vector<double> low, Vector<double> high) {
            check_size(high.size(), low.size(), "high");
            new (self) R{{low.data(), high.data(), Index(low.size())}};
        },
        exact("low"), exact("high"), nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>());
}

void bind_interpolation(nb::module_ &m) {
    bind_rule<Within>(m, "Within");
    bind_rule<Mirrored>(m, "Mirrored");
    bind_rule<Corrected>(m, "Corrected");
    nb::class_<Constrained>(m, "Constrained")
        .def(nb::init<const Rule &, const Link &, nb::object, Vector<double>, Vector<double>, double, double, double>(), "rule"_a, "link"_a, "rows"_a,
             exact("s"), exact("q"), "step"_a, "shift"_a, "W"_a, nb::keep_alive<1, 2>())
        .def("epoch", &Constrained::epoch, exact("order"), exact("alpha"), exact("u"), "total"_a.none())
        .def("epoch_again", &Constrained::epoch_again, exact("order"), exact("alpha"), exact("u"), "damping"_a)
        .def("accelerate", &Constrained::accelerate, exact("order"), "theta"_a, "blocks"_a, exact("images"), exact("z"), exact("u"),
             "momentum"_a = true, "local"_a = 0.0, "least"_a = 0.0);
}

}  // namespace fenchel
