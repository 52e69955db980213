// argmin_x 1/2 sum (x_i - y_i)^2 + lam sum |x_{i+1} - x_i|, exactly and in O(n) (Johnson 2013, dynamic programming).
//
// Forward: the derivative of the best cost of x_1..x_k as a function of x_k, clipped to [-lam, lam], is piecewise linear; it is kept as
// its knots. Every step adds x - y_{k+1}, cuts off what lies beyond -lam and lam, and remembers the two cuts.
// Backward: x_k is x_{k+1} clipped to the cuts of step k.
#pragma once
#include <algorithm>
#include <vector>

#include "losses.hpp"
#include "storage.hpp"

namespace fenchel {

// The solver of one line after another; its memory is that of the longest.
class TotalVariation {
  public:
    void solve(const double *y, Index n, double lam, double *x) {
        if (n == 1 || lam == 0) {
            std::copy(y, y + n, x);
            return;
        }
        if (static_cast<Index>(cuts_.size()) < n) {
            knots_.resize(2 * n);
            cuts_.resize(n);
        }
        Knot *const knots = knots_.data();
        Cut *const cuts = cuts_.data();
        Index first = n, last = n - 1;  // live knots: first..last
        double left = -y[0], right = -y[0];  // the derivative is x + left before all knots, x + right after all of them
        for (Index k = 0; k < n - 1; ++k) {
            // Where the derivative is -lam, from the left; knots before that point are dropped.
            double slope = 1, offset = left;
            while (first <= last && slope * knots[first].at + offset < -lam) {
                slope += knots[first].slope;
                offset += knots[first].offset;
                ++first;
            }
            const Knot low{(-lam - offset) / slope, slope, offset + lam};
            // Where it is +lam, from the right.
            slope = 1, offset = right;
            while (last >= first && slope * knots[last].at + offset > lam) {
                slope -= knots[last].slope;
                offset -= knots[last].offset;
                --last;
            }
            const Knot high{(lam - offset) / slope, -slope, -offset + lam};
            cuts[k] = {low.at, high.at};
            knots[--first] = low;
            knots[++last] = high;
            left = -lam - y[k + 1];
            right = lam - y[k + 1];
        }
        double slope = 1, offset = left;
        while (first <= last && slope * knots[first].at + offset < 0) {
            slope += knots[first].slope;
            offset += knots[first].offset;
            ++first;
        }
        x[n - 1] = -offset / slope;
        for (Index k = n - 2; k >= 0; --k) x[k] = clip(x[k + 1], cuts[k].low, cuts[k].high);
    }

  private:
    struct Knot {
        double at, slope, offset;  // to the right of `at` the derivative grows by slope * x + offset
    };
    struct Cut {
        double low, high;
    };
    std::vector<Knot> knots_;
    std::vector<Cut> cuts_;
};

// The pieces on which x is constant, worked out again: x is the mean of y, pulled by lam towards its neighbours, and the multipliers
// u of the differences (u_{k-1} - u_k = y_k - x_k) are exactly lam or -lam at every jump. Rounding then adds up over a piece, not
// over the whole line.
inline void polish(const double *y, Index n, double lam, double *x, double *u) {
    double before = 0;
    for (Index start = 0, stop; start < n; start = stop) {
        long double sum = 0;
        for (stop = start; stop < n && x[stop] == x[start]; ++stop) sum += y[stop];
        const double after = stop == n ? 0 : x[stop] > x[start] ? lam : -lam;
        const double level = static_cast<double>((sum + (static_cast<long double>(after) - before)) / (stop - start));
        long double at = before;
        for (Index k = start; k < stop; ++k) {
            x[k] = level;
            at -= static_cast<long double>(y[k]) - level;
            if (k + 1 < stop) u[k] = clip(static_cast<double>(at), -lam, lam);
        }
        if (stop < n) u[stop - 1] = after;
        before = after;
    }
}

// Every row of a matrix (rows x width, C order) on its own.
inline void total_variation_of_rows(const double *y, Index rows, Index width, double lam, double *x, Index threads) {
    parallel(threads, [&](Index part) {
        TotalVariation solver;
        for (Index i = rows * part / threads; i < rows * (part + 1) / threads; ++i) solver.solve(y + i * width, width, lam, x + i * width);
    });
}

// Every column: eight at a time are brought together, so that a cache line is read once.
inline void total_variation_of_columns(const double *y, Index rows, Index width, double lam, double *x, Index threads) {
    constexpr Index block = 8;
    const Index blocks = (width + block - 1) / block;
    parallel(threads, [&](Index part) {
        TotalVariation solver;
        std::vector<double> in(block * rows), out(block * rows);
        for (Index b = blocks * part / threads; b < blocks * (part + 1) / threads; ++b) {
            const Index first = b * block, count = std::min(block, width - first);
            for (Index i = 0; i < rows; ++i)
                for (Index j = 0; j < count; ++j) in[j * rows + i] = y[i * width + first + j];
            for (Index j = 0; j < count; ++j) solver.solve(&in[j * rows], rows, lam, &out[j * rows]);
            for (Index i = 0; i < rows; ++i)
                for (Index j = 0; j < count; ++j) x[i * width + first + j] = out[j * rows + i];
        }
    });
}

}  // namespace fenchel
