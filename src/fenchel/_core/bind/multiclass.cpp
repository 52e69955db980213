// Multiclass kernels for Python: products with k vectors, and dual ascent for losses of k scores.
#include "ascent/multiclass.hpp"
#include "bind/bind.hpp"

namespace fenchel {

using MutableMatrix = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using BlockLoss = std::variant<Multinomial, CrammerSinger>;

void check_stride(Index stride) {
    if (stride % 4 != 0) throw std::invalid_argument("blocks must be padded to a multiple of four columns, got " + std::to_string(stride));
}

// kernel(matrix, block matrix, stride, out, threads) -> depth, for `given` rows in and `made` rows out.
template <class Kernel>
std::tuple<OutputOf<2>, Index> block_product(const Lines &A, const Matrix<double> &B, Index given, Index made, Index threads, Kernel &&kernel) {
    const Index stride = B.shape(1);
    check_size(B.shape(0), given, "the matrix of blocks");
    check_stride(stride);
    Result out(made, stride);
    Index depth;
    {
        nb::gil_scoped_release release;
        depth = A.visit([&](const auto &M) { return kernel(M, B.data(), stride, out.data, threads); });
    }
    return {out.array, depth};
}

std::tuple<double, double, double, Index, Index> ascend_block_rows(const BlockLoss &loss, const Lines &rows, Vector<Index> y, Vector<double> s,
                                                                   Vector<double> squared_norm,
                                                                   nb::ndarray<Index, nb::ndim<1>, nb::c_contig, nb::device::cpu> order, MutableMatrix alpha,
                                                                   MutableMatrix u, double mu, double threshold, double inverse_rho, double W, double margin,
                                                                   Index threads, Index rounds) {
    const Index n = rows.lines(), k = alpha.shape(1);
    check_sizes({y.size(), s.size(), squared_norm.size(), alpha.shape(0)}, n, "an array over the samples");
    check_size(u.shape(0), rows.width() + 1, "u");
    if (threads < 1 || rounds < 1) throw std::invalid_argument("an epoch takes at least one thread and one round");
    check_stride(u.shape(1));
    if (Index(u.shape(1)) < k) throw std::invalid_argument("u has fewer columns than there are classes");
    check_within(y, k, "y names a class that does not exist");
    check_within(order, n, "order names a sample that does not exist");
    const Index steps = order.size();
    BlockAscent p{k, Index(u.shape(1)), mu, threshold, inverse_rho, W, margin, 1};
    const BlockSamples data{y.data(), s.data(), squared_norm.data()};
    nb::gil_scoped_release release;
    const auto run = [&]<bool Soft>(const auto &phi, const auto &M) {
        p.measured = Estimate::stride(phi.costly, steps);
        if (threads > 1)
            if (const auto all = ascend_blocks_in_threads<Soft>(phi, M, data, order.data(), steps, alpha.data(), u.data(), p, {threads, rounds})) return *all;
        BlockMemory memory(p);
        return ascend_blocks<Soft>(phi, M, data, order.data(), steps, alpha.data(), u.data(), p, memory);
    };
    const Epoch sums = std::visit(
        [&](const auto &phi) {
            return rows.visit([&](const auto &M) { return threshold > 0 ? run.template operator()<true>(phi, M) : run.template operator()<false>(phi, M); });
        },
        loss);
    return {sums.loss, sums.gap, sums.move, sums.kept, sums.moves};
}

template <class L>
void bind_block_loss(nb::module_ &m, const char *name) {
    nb::class_<L>(m, name)
        .def(nb::init<>())
        .def(
            "dual_step",
            [](const L &loss, Matrix<double> p, Matrix<double> z, Vector<double> q, Vector<Index> y) {
                const Index n = p.shape(0), k = p.shape(1);
                check_sizes({z.shape(0), q.size(), y.size()}, n, "an array over the samples");
                check_size(z.shape(1), k, "a row of z");
                Result out(n, k);
                std::copy(p.data(), p.data() + n * k, out.data);
                Workspace workspace(k);
                for (Index i = 0; i < n; ++i) loss.dual_step(out.data + i * k, z.data() + i * k, q(i), y(i), k, workspace);
                return out.array;
            },
            "p"_a, "z"_a, "q"_a, "y"_a);
}

void bind_multiclass(nb::module_ &m) {
    bind_block_loss<Multinomial>(m, "Multinomial");
    bind_block_loss<CrammerSinger>(m, "CrammerSinger");
    m.def(
        "gather_blocks",
        [](const Lines &A, Matrix<double> B, Index threads) {
            return block_product(A, B, A.width(), A.lines(), threads, [](const auto &...arguments) { return gather_blocks(arguments...); });
        },
        "lines"_a, "blocks"_a, "threads"_a);
    m.def(
        "scatter_blocks",
        [](const Lines &A, Matrix<double> B, Index threads) {
            return block_product(A, B, A.lines(), A.width(), threads, [](const auto &...arguments) { return scatter_blocks(arguments...); });
        },
        "lines"_a, "blocks"_a, "threads"_a);
    m.def("ascend_blocks", &ascend_block_rows, "loss"_a, "rows"_a, "y"_a, "s"_a, "squared_norm"_a, exact("order"), exact("alpha"), exact("u"), "mu"_a,
          "threshold"_a, "inverse_rho"_a, "W"_a, "margin"_a, "threads"_a, "rounds"_a);
}

}  // namespace fenchel
