// Dual coordinate ascent for Python: an Ascent has the data of a problem, `epoch` is one pass over some samples.
#include <nanobind/stl/optional.h>

#include <optional>

#include "ascent/dual_ascent.hpp"
#include "bind/bind.hpp"

namespace fenchel {

using Order = nb::ndarray<Index, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

class Ascent {
  private:
    void check(const Order &order, const Mutable &alpha, const Mutable &u) const {
        check_size(alpha.size(), rows_->lines(), "alpha");
        check_size(u.size(), rows_->width() + 1, "u");
        check_within(order, rows_->lines(), "order names a sample that does not exist");
    }
    Samples samples() const { return {y_.data(), s_.data(), q_.data()}; }
    template <class F>
    auto visit(F &&f) const {
        return std::visit([&](const auto &loss, const auto &link) { return rows_->visit([&](const auto &rows) { return f(loss, link, rows); }); }, loss_,
                          link_);
    }

  public:
    Ascent(const Loss &loss, const Link &link, nb::object rows, Vector<double> y, Vector<double> s, Vector<double> q, double step, double shift, double W)
        : loss_(loss), link_(link), rows_(nb::cast<const Lines *>(rows)), keep_(rows), y_(y), s_(s), q_(q), scale_{step, shift, W} {
        check_sizes({y.size(), s.size(), q.size()}, rows_->lines(), "a vector over the samples");
    }

    std::tuple<double, double, double, Index, double, Index> epoch(Order order, Mutable alpha, Mutable u, double margin, std::optional<Mutable> held,
                                                                   Index threads, Index rounds) {
        check(order, alpha, u);
        if (held) check_size(held->size(), rows_->lines(), "held");
        if (threads < 1 || rounds < 1 || (held && threads > 1))
            throw std::invalid_argument("an epoch takes at least one thread and one round, and one thread if it collects an average");
        double *weighted = held ? held->data() : nullptr;
        nb::gil_scoped_release release;
        const Index steps = static_cast<Index>(order.size());
        const Epoch sums = visit([&](const auto &loss, auto link, const auto &rows) {
            const EpochOptions<> options{{margin}, Estimate::stride(costly<std::decay_t<decltype(loss)>>, steps)};
            if (threads > 1)
                if (const auto all = ascend_in_threads(loss, rows, samples(), link, scale_, order.data(), steps, alpha.data(), u.data(), options,
                                                       {threads, rounds}, buffer_))
                    return *all;
            link.begin(u.data(), rows.width);
            return ascend(loss, rows, samples(), link, scale_, order.data(), steps, alpha.data(), Weights{u.data()}, options, weighted);
        });
        return {sums.loss, sums.gap, sums.move, sums.kept, sums.path, sums.moves};
    }

    void first_epoch(Order order, Mutable alpha, Mutable u) const {
        check(order, alpha, u);
        nb::gil_scoped_release release;
        visit([&](const auto &loss, auto link, const auto &rows) {
            link.begin(u.data(), rows.width);
            first_pass(loss, rows, samples(), link, scale_, order.data(), static_cast<Index>(order.size()), alpha.data(), u.data());
        });
    }

  private:
    Loss loss_;
    Link link_;
    const Lines *rows_;
    nb::object keep_;
    Vector<double> y_, s_, q_;
    Scale scale_;
    Buffer buffer_;  // for copies of u
};

void bind_ascent(nb::module_ &m) {
    nb::class_<Linear>(m, "Linear").def(nb::init<>());
    nb::class_<Threshold>(m, "Threshold").def("__init__", [](Threshold *self, double threshold) { new (self) Threshold{threshold}; });
    nb::class_<Power>(m, "Power").def("__init__", [](Power *self, double p, double radius) { new (self) Power{p, radius}; });
    nb::class_<Entropic>(m, "Entropic").def("__init__", [](Entropic *self, double radius) { new (self) Entropic{radius}; });
    nb::class_<Ascent>(m, "Ascent")
        .def(nb::init<const Loss &, const Link &, nb::object, Vector<double>, Vector<double>, Vector<double>, double, double, double>(), "loss"_a, "link"_a,
             "rows"_a, exact("y"), exact("s"), exact("q"), "step"_a, "shift"_a, "W"_a)
        .def("epoch", &Ascent::epoch, exact("order"), exact("alpha"), exact("u"), "margin"_a, "held"_a.none(), "threads"_a, "rounds"_a)
        .def("first_epoch", &Ascent::first_epoch, exact("order"), exact("alpha"), exact("u"));
}

}  // namespace fenchel
