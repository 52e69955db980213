// Sums over the samples of an epoch of dual ascent, from quantities that its steps compute anyway.
#pragma once
#include <algorithm>

#include "linalg/storage.hpp"

namespace fenchel {

// Each sample's terms are those at the time of its visit.
struct Epoch {
    double loss = 0;  // sum s_i phi(z_i)
    double gap = 0;   // sum s_i (phi(z_i) + phi*(-a_i) + a_i z_i): about W times the duality gap
    double move = 0;  // the largest change of a score by its own step
    double path = 0;  // sum s_i q_i (change of a_i)^2
    Index moves = 0;  // steps that change a multiplier
    Index kept = 0;   // samples that stay in the order

    // Adds the sums of further samples, and moves their order from `from` behind the samples kept so far at `to`.
    void append(const Epoch &next, const Index *from, Index *to) {
        std::copy(from, from + next.kept, to + kept);
        loss += next.loss, gap += next.gap, move = std::max(move, next.move);
        path += next.path, moves += next.moves, kept += next.kept;
    }
};

// Estimates of the loss and the gap from every fourth sample, for losses with logarithms and many samples.
class Estimate {
  public:
    explicit Estimate(Index stride) : stride_(stride) {}
    static Index stride(bool costly, Index steps) { return costly && steps >= 8192 ? 4 : 1; }
    bool due(Index step, double weight) {
        const bool due = step % stride_ == 0;
        visited_ += weight;
        if (due) measured_ += weight;
        return due;
    }
    Epoch scaled(Epoch sums) const {
        if (0 < measured_ && measured_ < visited_) sums.loss *= visited_ / measured_, sums.gap *= visited_ / measured_;
        return sums;
    }

  private:
    Index stride_;
    double visited_ = 0, measured_ = 0;
};

}  // namespace fenchel
