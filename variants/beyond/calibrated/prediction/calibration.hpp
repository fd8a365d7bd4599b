// What was learned of the sources themselves: how far each may be trusted. It holds no text.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "beyond/calibrated/history/match_pointer.hpp"
#include "beyond/calibrated/history/node.hpp"
#include "beyond/calibrated/history/suffix_hashes.hpp"
#include "beyond/calibrated/prediction/counters.hpp"
#include "beyond/calibrated/prediction/mixer.hpp"

namespace ladder::calibrated {

inline constexpr std::size_t n_scopes = 2;  // own, shared

// Sources by lane, the first heard first: the matches, then contexts from the longest down, the own one
// before the shared.
[[nodiscard]] constexpr std::size_t match_lane(std::size_t scope) noexcept {
    return scope;
}
[[nodiscard]] constexpr std::size_t node_lane(std::size_t scope, std::size_t order) noexcept {
    return n_scopes * (n_orders - order) + scope;
}
inline constexpr std::size_t bias_lane = n_scopes * (n_orders + 1);  // a constant

// Plain words only, written and read as they lie.
struct Calibration {
    using NodeCounters =
        std::array<std::array<Counter, node_states>, bias_lane>;  // those of the matches idle
    static constexpr std::size_t n_sets = (n_orders + 1) * 4;     // orders found, kind of match

    NodeCounters first{};   // of A, by lane
    NodeCounters second{};  // of B
    std::array<std::array<Counter, MatchPointer::n_states>, n_scopes> match{};
    std::array<std::array<Weights, n_sets>, n_scopes> weights{};  // the sets of both scopes are added up
    std::array<Correction, 4> correction{};                       // by the better match's kind
    std::uint32_t truths = 0;                                     // seen, up to a limit

    Calibration() noexcept {
        constexpr std::int32_t first_weight = 20000;
        for (auto& sets : weights) {
            for (Weights& set : sets) {
                set.fill(first_weight);
            }
        }
        for (std::size_t state = 0; state < node_states; ++state) {
            for (std::size_t lane = n_scopes; lane < bias_lane; ++lane) {
                first[lane][state] = Counter(guess(state, false));
                second[lane][state] = Counter(guess(state, true));
            }
        }
    }

    // Whether no later step can overflow or leave its tables.
    [[nodiscard]] bool is_sound() const noexcept {
        const auto weight = [](std::int32_t w) { return w >= -weight_limit && w <= weight_limit; };
        for (const auto& sets : weights) {
            for (const Weights& set : sets) {
                if (!std::all_of(set.begin(), set.end(), weight)) {
                    return false;
                }
            }
        }
        return truths <= most_truths && std::all_of(correction.begin(), correction.end(),
                                                    [](const Correction& c) { return c.is_sound(); });
    }

    static constexpr std::uint32_t warm = 8192;  // truths after which counters learn from every fourth
    static constexpr std::uint32_t most_truths = 2 * warm;

private:
    // Before anything was seen: the counts themselves, a little drawn to a half and less.
    static constexpr std::uint32_t guess(std::size_t state, bool of_second) noexcept {
        constexpr std::array<std::uint32_t, 9> middle = {0,  10, 20,  30, 40,
                                                         55, 80, 120, 200};  // of a bucket, tenths
        const std::uint32_t hits = middle[state / 72];
        const std::uint32_t others = middle[state / 8 % 9];
        const std::uint32_t b = std::min(static_cast<std::uint32_t>(state % 4) * 10, others);
        const std::uint32_t part = of_second ? b + 2 : hits + 3;
        return static_cast<std::uint32_t>((std::uint64_t{part} << 22) / (hits + others + 13));
    }
};

}  // namespace ladder::calibrated
