// Several threads that move one vector, each a copy of its own.
//
// K threads take disjoint parts of the steps. What the others do meanwhile a thread cannot see, but their parts are as random as its
// own: it makes every move `stretch` times as long, as if they moved as it does. After each round all go on from what the true moves
// make of the vector, u + sum_k (copy_k - u) / stretch.
// With stretch = K that is their mean, and for a quadratic D no round lowers it if steps reckon with `caution` = K/2 times their own
// curvature. For weights 1, G = X X' / (mu W), curvature c of the conjugates, and T + E + T' = B the blocks of G on the diagonal with
// their diagonal E, a round is a Gauss-Seidel step with M = K T + (K/2) E + c I, and M + M' - G - c I = K B - G + c I > 0. (K is also
// the safe choice of sigma' in Ma and others 2015.) What is taken is 3/4 K: a direction that every thread has settled is then overshot
// by a third, and moves are less noisy, so that fewer epochs are needed. No proof covers that. Orders that are not random can make it
// diverge, so the caller shares random ones only, and stops sharing where it brings no progress.
#pragma once
#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "ascent/epoch.hpp"

namespace fenchel {

struct Together {
    Index threads, rounds;
    double stretch() const { return 0.75 * static_cast<double>(threads); }
    double caution() const { return 0.5 * static_cast<double>(threads); }
};

// Where threads wait for one another: in a loop for as long as waking one up takes, then asleep.
class Meeting {
  public:
    explicit Meeting(Index threads) : threads_(threads) {}
    void wait(Index &turn) {
        turn += threads_;
        arrived_.fetch_add(1, std::memory_order_acq_rel);
        arrived_.notify_all();
        for (int spin = 0; spin < 4096 && arrived_.load(std::memory_order_acquire) < turn; ++spin) pause();
        for (Index now; (now = arrived_.load(std::memory_order_acquire)) < turn;) arrived_.wait(now, std::memory_order_acquire);
    }

  private:
    static void pause() {
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#endif
    }
    const Index threads_;
    std::atomic<Index> arrived_{0};
};

// Run f(part) for part = 0 .. parts - 1 at the same time; false, and none is run, if there are not so many threads to be had.
// f may wait for the others, and must not throw.
template <class F>
bool at_once(Index parts, const F &f) {
    enum Signal { stay, go, leave };
    std::atomic<Signal> signal{stay};
    std::vector<std::thread> others;
    others.reserve(parts);
    try {
        for (Index p = 1; p < parts; ++p)
            others.emplace_back([&, p]() noexcept {
                signal.wait(stay);
                if (signal == go) f(p);
            });
    } catch (const std::exception &) {  // no thread, or no memory for one
        signal = leave;
    }
    if (signal == stay) signal = go;
    signal.notify_all();
    const bool all = signal == go;
    const auto here = [&]() noexcept { f(Index{0}); };
    if (all) here();
    for (auto &thread : others) thread.join();
    return all;
}

// Memory for copies, kept for the next call, as new memory costs more than a round; not filled, so that each thread touches its own first.
class Room {
  public:
    double *of(Index size) {
        if (size > size_) values_ = std::make_unique_for_overwrite<double[]>(size), size_ = size;
        return values_.get();
    }

  private:
    std::unique_ptr<double[]> values_;
    Index size_ = 0;
};

// Rounds of work(part, round, copy), after which u is what their moves, `stretch` times too long, make of it.
template <class Work>
bool move_together(const Together &team, double *u, Index width, Room &room, const Work &work) {
    const Index stride = (width + 15) / 8 * 8, threads = team.threads;  // no cache line belongs to two
    double *copies = room.of(threads * stride);
    const double part_of_each = 1 / team.stretch(), kept = 1 - static_cast<double>(threads) * part_of_each;
    Meeting meeting(threads);
    return at_once(threads, [&](Index part) {
        double *copy = copies + part * stride;
        const Index begin = width * part / threads, end = width * (part + 1) / threads;
        Index turn = 0;
        for (Index round = 0; round < team.rounds; ++round) {
            std::copy(u, u + width, copy);
            work(part, round, copy);
            meeting.wait(turn);
            for (Index j = begin; j < end; ++j) u[j] *= kept;
            for (Index other = 0; other < threads; ++other) {
                const double *theirs = copies + other * stride;
                for (Index j = begin; j < end; ++j) u[j] += theirs[j] * part_of_each;
            }
            meeting.wait(turn);
        }
    });
}

// An epoch by a team: pass(order, steps, copy) for parts of the order, which is compacted as each of them compacts its own. Nothing if
// there are not so many threads. `pass` is told which part it works on, and must not throw.
template <class F>
std::optional<Pass> pass_together(const Together &team, Index *order, Index steps, double *u, Index width, Room &room, const F &pass) {
    std::vector<Pass> passes(team.threads);
    const auto first = [&](Index part, Index round) { return order + steps * (part * team.rounds + round) / (team.threads * team.rounds); };
    const bool done = move_together(team, u, width, room, [&](Index part, Index round, double *copy) {
        Index *mine = first(part, round);
        passes[part].append(pass(part, mine, first(part, round + 1) - mine, copy), mine, first(part, 0));
    });
    if (!done) return std::nullopt;
    Pass all;
    for (Index part = 0; part < team.threads; ++part) all.append(passes[part], first(part, 0), order);
    return all;
}

}  // namespace fenchel
