// One step: what every source says at a place, the best candidate and its probability.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "base/types.hpp"
#include "beyond/calibrated/calibration.hpp"
#include "beyond/calibrated/match_pointer.hpp"
#include "beyond/calibrated/scope.hpp"

namespace ladder::calibrated {

// A candidate's value in a lane: `first_odds` if it is A, `second_odds` if it is B, else `other_odds`.
struct alignas(64) Lanes {
    std::array<Token, n_lanes> first;
    std::array<Token, n_lanes> second;
    std::array<std::int32_t, n_lanes> first_odds;
    std::array<std::int32_t, n_lanes> second_odds;
    std::array<std::int32_t, n_lanes> other_odds;

    void clear() noexcept {
        first.fill(null_token);
        second.fill(null_token);
        first_odds.fill(0);
        second_odds.fill(0);
        other_odds.fill(0);
        other_odds[bias_lane] = 256;
    }
    void inputs_of(Token token, Inputs& inputs) const noexcept {
        for (std::size_t i = 0; i < n_lanes; ++i) {
            const std::int32_t if_second = second[i] == token ? second_odds[i] : other_odds[i];
            inputs[i] = first[i] == token ? first_odds[i] : if_second;
        }
    }
};

struct Prediction {
    std::size_t known;  // orders that the text is long enough for
    ContextKeys keys;
    std::array<FoundNodes, n_scopes> found;
    std::array<MatchPointer, n_scopes> matches;
    std::array<std::uint16_t, match_lane + n_scopes> states;  // by lane, where the source is there
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

inline constexpr std::int32_t other_odds = -512;  // of a candidate that a source knows nothing of

inline void say_nodes(Prediction& at, std::size_t scope, const Calibration& calibration) noexcept {
    const FoundNodes& found = at.found[scope];
    for (std::size_t i = 0; i < found.size; ++i) {
        const std::size_t lane = scope * n_orders + i;
        const NodeRef node = found.nodes[i];
        const std::uint32_t state = state_of(node.counts());
        at.states[lane] = static_cast<std::uint16_t>(state);
        at.lanes.first[lane] = node.first();
        at.lanes.second[lane] = node.second();
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
    const std::size_t lane = match_lane + scope;
    const std::size_t state = match.state();
    at.states[lane] = static_cast<std::uint16_t>(state);
    at.lanes.first[lane] = token;
    at.lanes.first_odds[lane] = calibration.match[scope][state].odds();
    at.lanes.other_odds[lane] = other_odds;
}

// At most five distinct ones: the matches', then A from the high orders down, then B, the own scope's first.
class Candidates {
public:
    static constexpr std::size_t most = 5;

    explicit Candidates(const Lanes& lanes) noexcept {
        add(lanes.first[match_lane]);
        add(lanes.first[match_lane + 1]);
        add_all(lanes.first);
        add_all(lanes.second);
    }
    [[nodiscard]] const Token* begin() const noexcept { return tokens_.data(); }
    [[nodiscard]] const Token* end() const noexcept { return tokens_.data() + size_; }

private:
    void add(Token token) noexcept {
        if (token != null_token && size_ < most && std::find(begin(), end(), token) == end()) {
            tokens_[size_++] = token;
        }
    }
    void add_all(const std::array<Token, n_lanes>& tokens) noexcept {
        for (std::size_t i = n_orders; i-- > 0;) {
            add(tokens[i]);
            add(tokens[n_orders + i]);
        }
    }
    std::array<Token, most> tokens_;
    std::size_t size_ = 0;
};

inline void choose(Prediction& at, const Calibration& calibration) noexcept {
    alignas(64) Weights weights;
    for (std::size_t i = 0; i < n_lanes; ++i) {
        weights[i] = calibration.weights[0][at.sets[0]][i] + calibration.weights[1][at.sets[1]][i];
    }
    at.token = null_token;
    at.odds = -odds_limit - 1;
    for (const Token token : Candidates(at.lanes)) {
        alignas(64) Inputs inputs;
        at.lanes.inputs_of(token, inputs);
        const std::int32_t odds = mix(weights, inputs);
        if (odds > at.odds || (odds == at.odds && token < at.token)) {
            at.odds = odds;
            at.token = token;
            at.inputs = inputs;
        }
    }
}

}  // namespace detail

// Fills in all but `keys`, `known`, `found` and `matches`, which say where it is.
inline void predict(Prediction& at, const std::array<const Scope*, n_scopes>& scopes,
                    const Calibration& calibration) noexcept {
    at.lanes.clear();
    at.match_kind = 0;
    for (std::size_t scope = 0; scope < n_scopes; ++scope) {
        std::size_t kind = 0;
        if (scopes[scope] != nullptr) {
            detail::say_nodes(at, scope, calibration);
            detail::say_match(at, scope, scopes[scope]->text, calibration);
            kind = at.lanes.first[match_lane + scope] == null_token ? 0 : at.matches[scope].kind();
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
    constexpr std::uint32_t warm = 8192;   // truths after which counters learn from every fourth
    constexpr std::uint32_t quick = 4096;  // truths until which weights move fast
    calibration.truths = calibration.truths < 2 * warm ? calibration.truths + 1 : calibration.truths - 3;
    if (calibration.truths < warm || calibration.truths % 4 == 0) {
        for (std::size_t scope = 0; scope < n_scopes; ++scope) {
            for (std::size_t i = 0; i < at.found[scope].size; ++i) {
                const std::size_t lane = scope * n_orders + i;
                calibration.first[lane][at.states[lane]].train(at.lanes.first[lane] == truth, counter_limit);
                if (at.lanes.second[lane] != null_token) {
                    calibration.second[lane][at.states[lane]].train(at.lanes.second[lane] == truth, counter_limit);
                }
            }
            const std::size_t lane = match_lane + scope;
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
