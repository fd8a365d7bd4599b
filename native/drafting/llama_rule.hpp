// llama.cpp's rule: the thresholds a winner must pass, by source and n-gram length.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/types.hpp"

namespace ladder {

struct Threshold {
    std::int64_t min_total;    // the n-gram must have been followed by this many tokens
    std::int64_t min_percent;  // and the winner must be this share of them

    // The raw count passes, never the weighted score.
    constexpr bool passes(std::int64_t total, std::int64_t count) const {
        return total >= min_total && 100 * count >= min_percent * total;
    }
};

// Index n - 1 for an n-gram of n tokens.
using Thresholds = std::array<Threshold, ngram_max>;

inline constexpr Thresholds context_thresholds{{{2, 66}, {2, 50}, {1, 50}, {1, 50}}};
inline constexpr Thresholds dynamic_thresholds{{{4, 75}, {3, 66}, {2, 66}, {2, 66}}};
inline constexpr Threshold static_threshold{2, 50};

// What a successor that the static cache knows is worth, per static count, against 1 for an unknown one.
inline constexpr std::int64_t static_weight = 100;

// The rule of the whole ladder. Constants, so that nothing is loaded for them.
struct LlamaRule {
    static constexpr std::string_view name = "llama";
    static constexpr const Thresholds& context() { return context_thresholds; }
    static constexpr const Thresholds& dynamic() { return dynamic_thresholds; }
    static constexpr const Threshold& static_only() { return static_threshold; }
};

}  // namespace ladder
