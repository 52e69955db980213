// argmin_x 1/2 sum (x_i - y_i)^2 + lam sum |x_{i+1} - x_i|, exactly and in O(n) (Johnson 2013, dynamic programming).
//
// Forward: the derivative of the best cost of x_1..x_k as a function of x_k, clipped to [-lam, lam], is piecewise linear; it is stored as
// its knots. Every step adds x - y_{k+1}, clips at -lam and lam, and stores the two cuts.
// Backward: x_k is x_{k+1} clipped to the cuts of step k.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "linalg/storage.hpp"
#include "losses/losses.hpp"

namespace fenchel {

// Solves a sequence of lines, reusing its memory.
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
        Index first = n, last = n - 1;       // live knots: first..last
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

// Recomputes the constant pieces of x: the mean of y, shifted by lam towards the neighbours, with multipliers u of the differences
// (u_{k-1} - u_k = y_k - x_k) of exactly lam or -lam at every jump. Rounding errors then accumulate over a piece only.
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

// Each row of a matrix (rows x width, C order).
inline void total_variation_of_rows(const double *y, Index rows, Index width, double lam, double *x, Index threads) {
    parallel(threads, [&](Index part) {
        TotalVariation solver;
        for (Index i = rows * part / threads; i < rows * (part + 1) / threads; ++i) solver.solve(y + i * width, width, lam, x + i * width);
    });
}

// Each column; eight at a time are copied, so that a cache line is read once.
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

// One step of block coordinate descent over rows and columns on min 1/2 |y - a - b|^2, a and b in the dual sets of the rows and of the columns: from z, b
// extrapolated by `beta` times its last change, the best a for z and then the best b for that a; w is y - a - b.
struct AlternatingStep {
    const double *y, *b, *before;
    double beta;
    Index rows, width;
    double *w, *a, *next;
};

// Sums of |w_{j+1} - w_j| along the rows, (w - y)^2, a w, next w, and (z - next)(next - b). Summed row by row, so that the result does not depend on the number
// of threads.
struct AlternatingSums {
    double variation = 0, square = 0, aw = 0, bw = 0, uphill = 0;
};

inline AlternatingSums alternate(const AlternatingStep &t, double across, double down, Index threads) {
    const Index width = t.width, size = t.rows * width;
    std::vector<double> rest(size);
    parallel(threads, [&](Index part) {
        TotalVariation solver;
        std::vector<double> line(width);
        for (Index i = t.rows * part / threads; i < t.rows * (part + 1) / threads; ++i) {
            const Index o = i * width;
            for (Index j = o; j < o + width; ++j) t.a[j] = t.y[j] - (t.b[j] + t.beta * (t.b[j] - t.before[j]));
            solver.solve(t.a + o, width, across, line.data());
            for (Index j = 0; j < width; ++j) {
                t.a[o + j] -= line[j];
                rest[o + j] = t.y[o + j] - t.a[o + j];
            }
        }
    });
    total_variation_of_columns(rest.data(), t.rows, width, down, t.w, threads);
    std::vector<AlternatingSums> sums(t.rows);
    parallel(threads, [&](Index part) {
        for (Index i = t.rows * part / threads; i < t.rows * (part + 1) / threads; ++i) {
            AlternatingSums sum;
            for (Index j = i * width; j < (i + 1) * width; ++j) {
                const double w = t.w[j], next = rest[j] - w, z = t.b[j] + t.beta * (t.b[j] - t.before[j]);
                t.next[j] = next;
                if (j + 1 < (i + 1) * width) sum.variation += std::fabs(t.w[j + 1] - w);
                sum.square += (w - t.y[j]) * (w - t.y[j]);
                sum.aw += t.a[j] * w;
                sum.bw += next * w;
                sum.uphill += (z - next) * (next - t.b[j]);
            }
            sums[i] = sum;
        }
    });
    AlternatingSums total;
    for (const AlternatingSums &sum : sums) {
        total.variation += sum.variation;
        total.square += sum.square;
        total.aw += sum.aw;
        total.bw += sum.bw;
        total.uphill += sum.uphill;
    }
    return total;
}

}  // namespace fenchel
