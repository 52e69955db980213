// Passes of a proximal gradient step for Python.
#include "ascent/proximal_gradient.hpp"
#include "bind/bind.hpp"

namespace fenchel {

namespace {

auto extrapolate_samples(const Loss &loss, Vector<double> now, Vector<double> before, double factor, Vector<double> y, Vector<double> s) {
    check_sizes({before.size(), y.size(), s.size()}, now.size(), "a vector over the samples");
    const Index n = now.size();
    Result z(n), a(n);
    double sum = 0;
    {
        nb::gil_scoped_release release;
        sum = std::visit([&](const auto &phi) { return extrapolate(phi, now.data(), before.data(), factor, y.data(), s.data(), n, z.data, a.data); }, loss);
    }
    return std::make_tuple(z.array, a.array, sum);
}

std::tuple<double, double> curvature_of_samples(const Loss &loss, Vector<double> x, Vector<double> z, Vector<double> a, Vector<double> y, Vector<double> s) {
    check_sizes({z.size(), a.size(), y.size(), s.size()}, x.size(), "a vector over the samples");
    nb::gil_scoped_release release;
    const Curvature found =
        std::visit([&](const auto &phi) { return curvature_between(phi, x.data(), z.data(), a.data(), y.data(), s.data(), Index(x.size())); }, loss);
    return {found.sum, found.size};
}

auto shrink_weights(Vector<double> now, Vector<double> before, double factor, Vector<double> v, Vector<double> steps, double t, Vector<double> threshold,
                    double ridge) {
    check_sizes({before.size(), v.size(), steps.size(), threshold.size()}, now.size(), "a vector over the weights");
    const Index d = now.size();
    Result x(d);
    ProximalStep step;
    {
        nb::gil_scoped_release release;
        step = shrink(now.data(), before.data(), factor, v.data(), steps.data(), t, threshold.data(), ridge, d, x.data);
    }
    return std::make_tuple(x.array, step.length2, step.turn, step.finite == 0);
}

}  // namespace

void bind_gradient(nb::module_ &m) {
    m.def("extrapolate_samples", &extrapolate_samples, "loss"_a, exact("now"), exact("before"), "factor"_a, exact("y"), exact("s"));
    m.def("curvature_of_samples", &curvature_of_samples, "loss"_a, exact("x"), exact("z"), exact("a"), exact("y"), exact("s"));
    m.def("shrink_weights", &shrink_weights, exact("now"), exact("before"), "factor"_a, exact("v"), exact("steps"), "t"_a, exact("threshold"), "ridge"_a);
}

}  // namespace fenchel
