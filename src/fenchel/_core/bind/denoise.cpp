// Denoising for Python: total variation of a signal with its multipliers, alternating steps for images, banded least squares for trends.
#include "bind/bind.hpp"
#include "denoise/banded.hpp"
#include "denoise/total_variation.hpp"

namespace fenchel {

void bind_denoise(nb::module_ &m) {
    m.def(
        "total_variation",
        [](Vector<double> y, double lam) {
            Result x(y.size());
            {
                nb::gil_scoped_release release;
                TotalVariation().solve(y.data(), y.size(), lam, x.data);
            }
            return x.array;
        },
        "y"_a, "lam"_a);
    m.def(
        "taut_string",
        [](Vector<double> y, double lam) {
            const Index n = y.size();
            if (n < 2) throw std::invalid_argument("a line has at least two samples");
            Result x(n), u(n - 1);
            {
                nb::gil_scoped_release release;
                TotalVariation().solve(y.data(), n, lam, x.data);
                polish(y.data(), n, lam, x.data, u.data);
            }
            return std::make_tuple(x.array, u.array);
        },
        "y"_a, "lam"_a);
    m.def(
        "banded_least_squares",
        [](Vector<Index> indptr, Vector<Index> indices, Vector<double> values, Vector<Index> order, Index width, Vector<double> p, Vector<double> weight,
           Vector<double> q) {
            const Index n = p.size(), unknowns = q.size();
            check_size(indptr.size(), n + 1, "indptr");
            check_size(order.size(), n, "order");
            check_size(weight.size(), unknowns, "the weights");
            check_size(values.size(), indices.size(), "the values");
            const BandedRows rows{indptr.data(), indices.data(), values.data(), order.data(), n};
            if (!fits_band(rows, Index(indices.size()), unknowns, width))
                throw std::invalid_argument("rows must be within the band, their columns ascending, and ordered by their first column");
            Result z(unknowns);
            {
                nb::gil_scoped_release release;
                banded_least_squares(rows, unknowns, width, p.data(), weight.data(), q.data(), z.data);
            }
            return z.array;
        },
        "indptr"_a, "indices"_a, "values"_a, "order"_a, "width"_a, "p"_a, "weight"_a, "q"_a);
    m.def(
        "total_variation_of_rows",
        [](Vector<double> y, Index rows, Index width, double lam, Index threads) {
            if (rows < 1 || width < 1 || threads < 1) throw std::invalid_argument("rows, width and threads must be at least 1");
            check_size(y.size(), rows * width, "the image");
            Result x(y.size());
            {
                nb::gil_scoped_release release;
                total_variation_of_rows(y.data(), rows, width, lam, x.data, threads);
            }
            return x.array;
        },
        "y"_a, "rows"_a, "width"_a, "lam"_a, "threads"_a);
    m.def(
        "alternating_step",
        [](Vector<double> y, Vector<double> b, Vector<double> before, double beta, Index rows, Index width, double across, double down, Index threads) {
            if (rows < 1 || width < 1 || threads < 1) throw std::invalid_argument("rows, width and threads must be at least 1");
            check_sizes({y.size(), b.size(), before.size()}, rows * width, "the image");
            Result w(y.size()), a(y.size()), next(y.size());
            AlternatingSums sums;
            {
                nb::gil_scoped_release release;
                sums = alternate({y.data(), b.data(), before.data(), beta, rows, width, w.data, a.data, next.data}, across, down, threads);
            }
            return std::make_tuple(w.array, a.array, next.array, std::make_tuple(sums.variation, sums.square, sums.aw, sums.bw, sums.uphill));
        },
        "y"_a, "b"_a, "before"_a, "beta"_a, "rows"_a, "width"_a, "across"_a, "down"_a, "threads"_a);
}

}  // namespace fenchel
