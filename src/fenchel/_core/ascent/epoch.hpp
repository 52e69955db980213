// What dual ascent notes on its way through the samples, for the price of what it computes anyway.
#pragma once
#include <algorithm>

#include "linalg/storage.hpp"

namespace fenchel {

// What a pass saw: sums over the samples visited, each at the time of its visit.
struct Pass {
    double loss = 0;  // sum s_i phi(z_i)
    double gap = 0;   // sum s_i (phi(z_i) + phi*(-a_i) + a_i z_i): about W times the duality gap
    double move = 0;  // the largest change of a score by its own step
    double path = 0;  // sum s_i q_i (change of a_i)^2, over the steps that move something
    Index moves = 0;  // how many those are
    Index kept = 0;   // samples that stay in the order

    // Samples after those, whose order begins at `from` where that of all begins at `to`.
    void append(const Pass &next, const Index *from, Index *to) {
        std::copy(from, from + next.kept, to + kept);
        loss += next.loss, gap += next.gap, move = std::max(move, next.move);
        path += next.path, moves += next.moves, kept += next.kept;
    }
};

// Where a loss takes logarithms, every fourth of many samples is measured, and speaks for the others.
class Measure {
  public:
    explicit Measure(Index stride) : stride_(stride) {}
    static Index stride(bool costly, Index steps) { return costly && steps >= 8192 ? 4 : 1; }
    bool due(Index step, double weight) {
        const bool due = step % stride_ == 0;
        visited_ += weight;
        if (due) measured_ += weight;
        return due;
    }
    Pass speak_for_all(Pass pass) const {
        if (0 < measured_ && measured_ < visited_) pass.loss *= visited_ / measured_, pass.gap *= visited_ / measured_;
        return pass;
    }

  private:
    Index stride_;
    double visited_ = 0, measured_ = 0;
};

}  // namespace fenchel
