// A monotonic clock cheap enough for half a million readings in a replay, and what one reading costs.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>

#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

namespace ladder {

// Reads the time-stamp counter where the processor guarantees a constant rate, and std::chrono elsewhere.
// rdtscp rather than rdtsc: it waits for the loads before it, so that a cache miss is charged to the
// section that caused it.
class Clock {
public:
    using Ticks = std::uint64_t;

    Clock() : uses_tsc_(has_invariant_tsc()), start_steady_ns_(steady_ns()), start_ticks_(now()) {
        measure_cost();
    }

    Ticks now() const {
#if defined(__x86_64__)
        if (uses_tsc_) [[likely]] {
            unsigned processor = 0;
            return __rdtscp(&processor);
        }
#endif
        return steady_ns();
    }

    const char* name() const { return uses_tsc_ ? "rdtscp" : "std::chrono::steady_clock"; }

    // Ticks to nanoseconds, by the rate seen between construction and now: the longer the replay, the more
    // exact. The constructor's own cost measurement takes some milliseconds, so the rate is never a guess.
    double ns_per_tick() const {
        if (!uses_tsc_) {
            return 1.0;
        }
        const double elapsed_ticks = static_cast<double>(now() - start_ticks_);
        return static_cast<double>(steady_ns() - start_steady_ns_) / elapsed_ticks;
    }

    double ns_per_reading() const { return ticks_per_reading_ * ns_per_tick(); }

private:
    static std::uint64_t steady_ns() {
        return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                              std::chrono::steady_clock::now().time_since_epoch())
                                              .count());
    }

    static bool has_invariant_tsc() {
#if defined(__x86_64__)
        unsigned a = 0, b = 0, c = 0, d = 0;
        constexpr unsigned invariant_tsc_bit = 1U << 8;
        constexpr unsigned rdtscp_bit = 1U << 27;
        const bool invariant = __get_cpuid(0x80000007U, &a, &b, &c, &d) != 0 && (d & invariant_tsc_bit) != 0;
        const bool rdtscp = __get_cpuid(0x80000001U, &a, &b, &c, &d) != 0 && (d & rdtscp_bit) != 0;
        return invariant && rdtscp;
#else
        return false;
#endif
    }

    // The median of batches: one interruption must not inflate the figure that is offered for subtraction.
    void measure_cost() {
        constexpr std::size_t batches = 41;
        constexpr int readings = 5000;
        std::array<double, batches> cost{};
        for (double& batch : cost) {
            const Ticks before = now();
            for (int i = 1; i < readings; ++i) {
                [[maybe_unused]] volatile Ticks sink = now();
            }
            batch = static_cast<double>(now() - before) / readings;
        }
        std::nth_element(cost.begin(), cost.begin() + batches / 2, cost.end());
        ticks_per_reading_ = cost[batches / 2];
    }

    bool uses_tsc_;
    std::uint64_t start_steady_ns_;
    Ticks start_ticks_;
    double ticks_per_reading_ = 0;
};

// Wall-clock times of the steps of a build; Clock is for what takes nanoseconds.
class LapTimer {
public:
    // Nanoseconds since the start or the last lap.
    std::uint64_t lap() {
        const auto now = std::chrono::steady_clock::now();
        const auto passed = std::chrono::duration_cast<std::chrono::nanoseconds>(now - start_);
        start_ = now;
        return static_cast<std::uint64_t>(passed.count());
    }

private:
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace ladder
