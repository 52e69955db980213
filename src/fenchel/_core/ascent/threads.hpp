// Threads that update one vector, each in its own copy.
//
// K threads take disjoint subsets of the steps. A thread does not see the updates of the others, but their subsets are as random as its
// own: it makes every update `stretch` times as long, to account for theirs. After each round all continue from the sum of the
// unstretched updates, u + sum_k (copy_k - u) / stretch.
// With stretch = K that is their mean, and for a quadratic D no round lowers it if steps use `damping` = K/2 times their own
// curvature. For weights 1, G = X X' / (mu W), curvature c of the conjugates, and T + E + T' = B the blocks of G on the diagonal with
// their diagonal E, a round is a Gauss-Seidel step with M = K T + (K/2) E + c I, and M + M' - G - c I = K B - G + c I > 0. (K is also
// the safe choice of sigma' in Ma and others 2015.) Here stretch is 3/4 K, without a proof: a direction in which every thread has
// converged is overshot by a third, but updates are less noisy, and fewer epochs are needed. Orders that are not random can make it
// diverge, so the caller uses threads with random orders only, and stops using them if they make no progress.
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

struct Threads {
    Index count, rounds;
    double stretch() const { return 0.75 * static_cast<double>(count); }
    double damping() const { return 0.5 * static_cast<double>(count); }
};

// Spins for about as long as waking a thread takes, then sleeps.
class Barrier {
  public:
    explicit Barrier(Index threads) : threads_(threads) {}
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

// Runs f(part) for part = 0 .. parts - 1 concurrently; returns false, and runs none, if that many threads cannot be started.
// f may wait for the others, and must not throw.
template <class F>
bool run_concurrently(Index parts, const F &f) {
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

// Memory for copies, reused because allocation costs more than a round; uninitialised, so that each thread first touches its own.
class Buffer {
  public:
    double *of(Index size) {
        if (size > size_) values_ = std::make_unique_for_overwrite<double[]>(size), size_ = size;
        return values_.get();
    }

  private:
    std::unique_ptr<double[]> values_;
    Index size_ = 0;
};

// Rounds of work(part, round, copy), each followed by the sum of their updates, divided by `stretch`.
template <class Work>
bool update_in_threads(const Threads &threads, double *u, Index width, Buffer &buffer, const Work &work) {
    const Index stride = (width + 15) / 8 * 8, count = threads.count;  // no cache line is shared by two threads
    double *copies = buffer.of(count * stride);
    const double weight = 1 / threads.stretch(), kept = 1 - static_cast<double>(count) * weight;
    Barrier barrier(count);
    return run_concurrently(count, [&](Index part) {
        double *copy = copies + part * stride;
        const Index begin = width * part / count, end = width * (part + 1) / count;
        Index turn = 0;
        for (Index round = 0; round < threads.rounds; ++round) {
            std::copy(u, u + width, copy);
            work(part, round, copy);
            barrier.wait(turn);
            for (Index j = begin; j < end; ++j) u[j] *= kept;
            for (Index other = 0; other < count; ++other) {
                const double *theirs = copies + other * stride;
                for (Index j = begin; j < end; ++j) u[j] += theirs[j] * weight;
            }
            barrier.wait(turn);
        }
    });
}

// epoch(part, order, steps, copy) for contiguous parts of the order, which is compacted as each call compacts its part. Returns nothing if
// the threads cannot be started. `epoch` must not throw.
template <class F>
std::optional<Epoch> epoch_in_threads(const Threads &threads, Index *order, Index steps, double *u, Index width, Buffer &buffer, const F &epoch) {
    std::vector<Epoch> epochs(threads.count);
    const auto first = [&](Index part, Index round) { return order + steps * (part * threads.rounds + round) / (threads.count * threads.rounds); };
    const bool done = update_in_threads(threads, u, width, buffer, [&](Index part, Index round, double *copy) {
        Index *mine = first(part, round);
        epochs[part].append(epoch(part, mine, first(part, round + 1) - mine, copy), mine, first(part, 0));
    });
    if (!done) return std::nullopt;
    Epoch all;
    for (Index part = 0; part < threads.count; ++part) all.append(epochs[part], first(part, 0), order);
    return all;
}

}  // namespace fenchel
