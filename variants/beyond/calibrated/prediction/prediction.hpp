// One step: what every source says at a place, the best candidate and its probability.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/types.hpp"
#include "beyond/calibrated/history/match_pointer.hpp"
#include "beyond/calibrated/history/scope.hpp"
#include "beyond/calibrated/prediction/calibration.hpp"

#if defined(__AVX2__) && !defined(LADDER_PORTABLE)
#include <immintrin.h>
#endif

namespace ladder::calibrated {

// What each source says: `first_odds` of candidate A, `second_odds` of B, `other_odds` of any other.
struct alignas(64) Lanes {
    std::array<Token, n_lanes> first;
    std::array<Token, n_lanes> second;
    std::array<std::int32_t, n_lanes> first_odds;
    std::array<std::int32_t, n_lanes> second_odds;
    std::array<std::int32_t, n_lanes> other_odds;
    std::uint32_t has_first;  // a bit a lane
    std::uint32_t has_second;

    void clear() noexcept {
        first.fill(null_token);
        second.fill(null_token);
        first_odds.fill(0);
        second_odds.fill(0);
        other_odds.fill(0);
        other_odds[bias_lane] = 256;
        has_first = has_second = 0;
    }
};

struct Prediction {
    SuffixHashes at;
    std::array<FoundNodes, n_scopes> found;
    std::array<MatchPointer, n_scopes> matches;
    std::array<std::uint16_t, n_lanes> states;  // by lane, where the source is there
    std::array<std::size_t, n_scopes> sets;
    std::size_t match_kind;
    Lanes lanes;

    Token token;         // the best candidate; null_token if there is none
    std::int32_t odds;   // as mixed
    std::int32_t mixed;  // the same as a probability of 2^16
    std::int32_t p;      // and corrected
    alignas(64) Inputs inputs;
};

namespace detail {

using Vector [[gnu::vector_size(32)]] = std::int32_t;

// The sign bits of a vector of eight.
[[nodiscard]] inline std::uint32_t bits_of(const Vector& vector) noexcept {
#if defined(__AVX2__) && !defined(LADDER_PORTABLE)
    return static_cast<std::uint32_t>(_mm256_movemask_ps(reinterpret_cast<__m256>(vector)));
#else
    std::uint32_t bits = 0;
    for (int i = 0; i < 8; ++i) {
        bits |= (static_cast<std::uint32_t>(vector[i]) >> 31) << i;
    }
    return bits;
#endif
}

inline constexpr std::int32_t other_odds = -512;  // of a candidate that a source knows nothing of

inline void say_nodes(Prediction& at, std::size_t scope, const NodeTable& nodes,
                      const Calibration& calibration) noexcept {
    const FoundNodes& found = at.found[scope];
    for (std::size_t i = found.begin(); i < found.size; ++i) {
        const std::size_t lane = node_lane(scope, i);
        const NodeNumber node = found.nodes[i];
        const std::uint32_t state = state_of(nodes.counts(node));
        at.states[lane] = static_cast<std::uint16_t>(state);
        at.lanes.first[lane] = nodes.first(node);
        at.lanes.second[lane] = nodes.second(node);
        at.lanes.has_first |= 1U << lane;
        at.lanes.has_second |= (nodes.second(node) == null_token ? 0U : 1U) << lane;
        at.lanes.first_odds[lane] = calibration.first[lane][state].odds();
        at.lanes.second_odds[lane] = calibration.second[lane][state].odds();
        at.lanes.other_odds[lane] = other_odds;
    }
}

inline void say_match(Prediction& at, std::size_t scope, const IndexedText& text,
                      const Calibration& calibration) noexcept {
    const MatchPointer& match = at.matches[scope];
    const Token token = text.at(match.place);
    if (token == null_token) {
        return;
    }
    const std::size_t lane = match_lane(scope);
    const std::size_t state = match.state();
    at.states[lane] = static_cast<std::uint16_t>(state);
    at.lanes.first[lane] = token;
    at.lanes.has_first |= 1U << lane;
    at.lanes.first_odds[lane] = calibration.match[scope][state].odds();
    at.lanes.other_odds[lane] = other_odds;
}

struct Scored {
    alignas(64) Inputs inputs;
    std::int32_t odds;
    std::uint32_t is_first;   // a bit a lane that has the candidate as A
    std::uint32_t is_second;  // as B
};

// Written with vectors of eight, which every compiler lowers to what the processor has.
inline void score(const Lanes& lanes, const Weights& weights, Token token, Scored& scored) noexcept {
    scored.is_first = scored.is_second = 0;
    Vector sum{};
    for (std::size_t i = 0; i < n_lanes; i += 8) {
        // By reference: vectors that are handed over by value are an ABI of their own.
        Vector first, second, first_odds, second_odds, other_odds, weight;
        const auto load = [i](Vector& vector, const auto& from) {
            std::memcpy(&vector, from.data() + i, sizeof vector);
        };
        load(first, lanes.first);
        load(second, lanes.second);
        load(first_odds, lanes.first_odds);
        load(second_odds, lanes.second_odds);
        load(other_odds, lanes.other_odds);
        load(weight, weights);
        const Vector is_first = first == token;
        const Vector is_second = (second == token) & ~is_first;
        const Vector inputs =
            (first_odds & is_first) | (second_odds & is_second) | (other_odds & ~(is_first | is_second));
        std::memcpy(scored.inputs.data() + i, &inputs, sizeof inputs);
        sum += (weight * inputs) >> 4;
        scored.is_first |= bits_of(is_first) << i;
        scored.is_second |= bits_of(is_second) << i;
    }
    std::int32_t total = 0;
    for (std::size_t i = 0; i < 8; ++i) {
        total += sum[i];
    }
    scored.odds = std::clamp(total >> 12, -odds_limit, odds_limit);
}

// At most five candidates: A of every lane from the first one on, then B.
inline void choose(Prediction& at, const Calibration& calibration) noexcept {
    constexpr int most_candidates = 5;
    alignas(64) Weights weights;
    for (std::size_t i = 0; i < n_lanes; ++i) {
        weights[i] = calibration.weights[0][at.sets[0]][i] + calibration.weights[1][at.sets[1]][i];
    }
    at.token = null_token;
    at.odds = -odds_limit - 1;
    std::uint32_t first = at.lanes.has_first;
    std::uint32_t second = at.lanes.has_second;
    for (int n = 0; n < most_candidates && (first | second) != 0; ++n) {
        const Token token = first != 0 ? at.lanes.first[static_cast<std::size_t>(std::countr_zero(first))]
                                       : at.lanes.second[static_cast<std::size_t>(std::countr_zero(second))];
        Scored scored;
        score(at.lanes, weights, token, scored);
        first &= ~scored.is_first;
        second &= ~scored.is_second;
        if (scored.odds > at.odds || (scored.odds == at.odds && token < at.token)) {
            at.odds = scored.odds;
            at.token = token;
            at.inputs = scored.inputs;
        }
    }
}

}  // namespace detail

// Fills in all but `at`, `found` and `matches`, which say where it is.
inline void predict(Prediction& at, const std::array<const Scope*, n_scopes>& scopes,
                    const Calibration& calibration) noexcept {
    at.lanes.clear();
    at.match_kind = 0;
    for (std::size_t scope = 0; scope < n_scopes; ++scope) {
        std::size_t kind = 0;
        if (scopes[scope] != nullptr) {
            detail::say_nodes(at, scope, scopes[scope]->nodes, calibration);
            detail::say_match(at, scope, scopes[scope]->text, calibration);
            kind = at.lanes.first[match_lane(scope)] == null_token ? 0 : at.matches[scope].kind();
        }
        at.sets[scope] = at.found[scope].size * 4 + kind;
        at.match_kind = std::max(at.match_kind, kind);
    }
    detail::choose(at, calibration);
    if (at.token != null_token) {
        at.mixed = squash(at.odds);
        at.p = (at.mixed + 3 * calibration.correction[at.match_kind].at(at.odds)) >> 2;
    }
}

// Learns from what came of a prediction, whether it was drafted or not.
inline void learn_from(const Prediction& at, Token truth, Calibration& calibration) noexcept {
    constexpr std::uint32_t counter_limit = 255;
    constexpr std::uint32_t quick = 4096;  // truths until which weights move fast
    calibration.truths =
        calibration.truths < Calibration::most_truths ? calibration.truths + 1 : calibration.truths - 3;
    if (calibration.truths < Calibration::warm || calibration.truths % 4 == 0) {
        for (std::size_t scope = 0; scope < n_scopes; ++scope) {
            for (std::size_t i = at.found[scope].begin(); i < at.found[scope].size; ++i) {
                const std::size_t lane = node_lane(scope, i);
                calibration.first[lane][at.states[lane]].train(at.lanes.first[lane] == truth, counter_limit);
                if (at.lanes.second[lane] != null_token) {
                    calibration.second[lane][at.states[lane]].train(at.lanes.second[lane] == truth,
                                                                    counter_limit);
                }
            }
            const std::size_t lane = match_lane(scope);
            if (at.lanes.first[lane] != null_token) {
                calibration.match[scope][at.states[lane]].train(at.lanes.first[lane] == truth, counter_limit);
            }
        }
    }
    if (at.token == null_token) {
        return;
    }
    const bool right = at.token == truth;
    const std::int32_t error = (right ? certain - 1 : 0) - at.mixed;
    const std::int32_t rate = calibration.truths < quick ? 4 : 1;
    for (std::size_t scope = 0; scope < n_scopes; ++scope) {
        train_weights(calibration.weights[scope][at.sets[scope]], at.inputs, error, rate);
    }
    calibration.correction[at.match_kind].train(at.odds, right);
}

}  // namespace ladder::calibrated
