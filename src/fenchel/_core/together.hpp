// Several threads that move one vector, each a copy of its own.
//
// K threads take disjoint parts of the steps. What the others do meanwhile a thread cannot see, but their parts are as random as its
// own: it makes every move `stretch` times as long, as if they moved as it does. After each round all go on from what the true moves
// make of the vector, u + sum_k (copy_k - u) / stretch. With stretch = K that is their mean, and for a quadratic D no round lowers it
// if steps reckon with a curvature `caution` times their own, caution = K/2: with G = X X' / (mu W), C = diag(s / L), B the blocks of G
// on the diagonal and L + D + L' = B, a round is a Gauss-Seidel step with M = K L + (K/2) D + C, and M + M' - G - C = K B - G + C > 0
// (Ma and others 2015 call K the safe choice of sigma'). A direction that every thread has settled is overshot by K / stretch - 1: with
// 3/4 K by a third, which is stable as well, and moves are half as noisy.
#pragma once
#include <algorithm>
#include <atomic>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

#include "pass.hpp"

namespace fenchel {

struct Together {
    Index threads, rounds;
    double stretch() const { return 0.75 * static_cast<double>(threads); }
    double caution() const { return 0.5 * static_cast<double>(threads); }
};

// Where threads wait for one another: in a loop, as waking one up takes longer than it works; in turns if cores are few.
class Meeting {
  public:
    explicit Meeting(Index threads) : threads_(threads) {}
    void wait(Index &turn) {
        turn += threads_;
        arrived_.fetch_add(1, std::memory_order_acq_rel);
        for (int spin = 0; arrived_.load(std::memory_order_acquire) < turn; ++spin)
            if (spin > 4096) std::this_thread::yield(); else pause();
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
            others.emplace_back([&, p] {
                signal.wait(stay);
                if (signal == go) f(p);
            });
    } catch (const std::system_error &) {
        signal = leave;
    }
    if (signal == stay) signal = go;
    signal.notify_all();
    const bool all = signal == go;
    if (all) f(Index{0});
    for (auto &thread : others) thread.join();
    return all;
}

// Rounds of work(part, round, copy), after which u is what their moves, `stretch` times too long, make of it. `room` is kept for the
// next call: new memory would cost more than a round.
template <class Work>
bool move_together(const Together &team, double *u, Index width, std::vector<double> &room, const Work &work) {
    const Index stride = (width + 7) / 8 * 8, threads = team.threads;  // no cache line belongs to two
    if (static_cast<Index>(room.size()) < threads * stride) room.resize(threads * stride);
    const double part_of_each = 1 / team.stretch(), kept = 1 - static_cast<double>(threads) * part_of_each;
    Meeting meeting(threads);
    return at_once(threads, [&](Index part) {
        double *copy = room.data() + part * stride;
        const Index begin = std::min(width, stride / 8 * part / threads * 8), end = std::min(width, stride / 8 * (part + 1) / threads * 8);
        Index turn = 0;
        for (Index round = 0; round < team.rounds; ++round) {
            std::copy(u, u + width, copy);
            work(part, round, copy);
            meeting.wait(turn);
            for (Index j = begin; j < end; ++j) u[j] *= kept;
            for (Index other = 0; other < threads; ++other) {
                const double *theirs = room.data() + other * stride;
                for (Index j = begin; j < end; ++j) u[j] += theirs[j] * part_of_each;
            }
            meeting.wait(turn);
        }
    });
}

// An epoch by a team: pass(order, steps, copy) for parts of the order, which is compacted as each of them compacts its own. Nothing if
// there are not so many threads.
template <class F>
std::optional<Pass> pass_together(const Together &team, Index *order, Index steps, double *u, Index width, std::vector<double> &room, const F &pass) {
    std::vector<Pass> passes(team.threads);
    const auto first = [&](Index part, Index round) { return order + steps * (part * team.rounds + round) / (team.threads * team.rounds); };
    const bool done = move_together(team, u, width, room, [&](Index part, Index round, double *copy) {
        Index *mine = first(part, round);
        passes[part].append(pass(mine, first(part, round + 1) - mine, copy), mine, first(part, 0));
    });
    if (!done) return std::nullopt;
    Pass all;
    for (Index part = 0; part < team.threads; ++part) all.append(passes[part], first(part, 0), order);
    return all;
}

}  // namespace fenchel
