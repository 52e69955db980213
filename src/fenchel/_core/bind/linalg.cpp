// Submatrices, mirrored triangles, and the functions of BLAS and LAPACK, for Python.
#include "bind/bind.hpp"
#include "linalg/lapack.hpp"
#include "linalg/submatrix.hpp"

namespace fenchel {

using Square = nb::ndarray<double, nb::ndim<2>, nb::device::cpu>;
using AnyArray = nb::ndarray<nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class T>
T *numbers(const AnyArray &array, const char *what) {
    if (array.dtype() != nb::dtype<T>()) throw std::invalid_argument(std::string(what) + " must have the matrix's type of numbers");
    return static_cast<T *>(array.data());
}

// Some entries of every line of a sparse matrix: those at index j become index place[j], and those with place[j] < 0 are left out. They
// are written to arrays, line after line, or with `across` index after index, from indptr on.
void take(const Lines &A, Vector<int> place, bool across, AnyArray indptr, AnyArray indices, AnyArray data) {
    check_size(place.size(), A.width(), "the places");
    A.visit([&](const auto &M) {
        if constexpr (requires { M.indptr; }) {
            using T = std::decay_t<decltype(*M.data)>;
            using I = std::decay_t<decltype(*M.indptr)>;
            const Index lines = Index(indptr.size()) - 1, entries = Index(indices.size());
            const Submatrix<T, I> to{numbers<I>(indptr, "indptr"), numbers<I>(indices, "indices"), numbers<T>(data, "data"), lines, entries};
            check_size(data.size(), entries, "the data");
            if (!across) {
                check_size(lines, M.lines, "the submatrix");
            } else {
                bool valid = lines >= 0 && to.indptr[0] == 0 && Index(to.indptr[lines]) <= entries;
                for (Index p = 0; p < lines; ++p) valid &= to.indptr[p] <= to.indptr[p + 1];
                for (size_t j = 0; j < place.size(); ++j) valid &= place(j) < lines;
                if (!valid) throw std::invalid_argument("the lines of the submatrix must begin one after the other");
            }
            nb::gil_scoped_release release;
            across ? take_across(M, place.data(), to) : take_some(M, place.data(), to);
        } else {
            throw std::invalid_argument("take is for sparse matrices");
        }
    });
}

auto entries_across(const Lines &A) {
    std::vector<Index> counts(A.width());
    A.visit([&](const auto &M) {
        if constexpr (requires { M.indptr; }) {
            nb::gil_scoped_release release;
            count_entries(M, counts.data());
        } else {
            throw std::invalid_argument("entries are counted in sparse matrices");
        }
    });
    return owned(std::move(counts));
}

void mirror_lower(Square H) {
    check_size(H.shape(1), H.shape(0), "a row of H");
    nb::gil_scoped_release release;
    mirror(H.data(), H.shape(0));
}

// A function of SciPy's Cython interface to BLAS or LAPACK: a pointer in a capsule whose name is the C signature. Its `d` is a typedef of
// double; integers of another width (ILP64) have another name.
template <class Function>
void bind_function(nb::module_ &m, const char *name) {
    nb::class_<Function>(m, name).def(
        "__init__",
        [name = std::string(name)](Function *self, nb::capsule capsule) {
            const std::string expected = Function::signature, given = capsule.name() ? capsule.name() : "";
            constexpr std::string_view prefix = "__pyx_t_", suffix = "_d *";
            std::string plain = given;
            for (size_t from; (from = plain.find(prefix)) != std::string::npos;) {
                const size_t end = std::min(plain.find('*', from), plain.size() - 1) + 1;
                if (!std::string_view(plain).substr(0, end).ends_with(suffix)) break;
                plain.replace(from, end - from, "double *");
            }
            if (plain != expected)
                throw nb::type_error(("SciPy's " + name + " has the signature \"" + given + "\", but fenchel was compiled for \"" + expected + "\"").c_str());
            new (self) Function{reinterpret_cast<decltype(Function::call)>(capsule.data())};
        },
        "capsule"_a);
}

void bind_linalg(nb::module_ &m) {
    bind_function<Posv>(m, "Posv");
    bind_function<Syrk>(m, "Syrk");
    m.def("take", &take, "lines"_a, exact("place"), "across"_a, exact("indptr"), exact("indices"), exact("data"));
    m.def("entries_across", &entries_across, "lines"_a);
    m.def("mirror_lower", &mirror_lower, exact("H"));
}

}  // namespace fenchel
