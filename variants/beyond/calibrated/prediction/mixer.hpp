// From what each source says of a candidate to one probability.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "beyond/calibrated/prediction/logistic.hpp"

namespace ladder::calibrated {

inline constexpr std::size_t n_lanes = 16;  // one a source

using Inputs = std::array<std::int32_t, n_lanes>;   // odds, in 256ths
using Weights = std::array<std::int32_t, n_lanes>;  // of 2^16
inline constexpr std::int32_t weight_limit = (1 << 18) - 1;

// One step down the gradient of the coding cost: error is truth - probability, of 2^16, and rate in 256ths.
inline void train_weights(Weights& weights, const Inputs& inputs, std::int32_t error,
                          std::int32_t rate) noexcept {
    const std::int32_t step = (error * rate) >> 2;
    for (std::size_t i = 0; i < n_lanes; ++i) {
        const std::int32_t moved = weights[i] + ((inputs[i] * step + (1 << 13)) >> 14);
        weights[i] = std::clamp(moved, -weight_limit, weight_limit);
    }
}

// The last word: what became of candidates that were given about these odds.
class Correction {
public:
    constexpr Correction() noexcept {
        for (std::size_t i = 0; i < table_.size(); ++i) {
            table_[i] = squash((static_cast<std::int32_t>(i) - 16) * 128);
        }
    }
    [[nodiscard]] constexpr std::int32_t at(std::int32_t odds) const noexcept {
        const auto [low, part] = place(odds);
        return (table_[low] * (128 - part) + table_[low + 1] * part) >> 7;
    }
    constexpr void train(std::int32_t odds, bool truth) noexcept {
        const auto [low, part] = place(odds);
        std::int32_t& p = table_[low + (part >= 64 ? 1 : 0)];
        p += ((truth ? certain - 1 : 0) - p) >> 6;
    }

    [[nodiscard]] bool is_sound() const noexcept {
        return std::all_of(table_.begin(), table_.end(),
                           [](std::int32_t p) { return p >= 0 && p < certain; });
    }

private:
    struct Place {
        std::size_t low;
        std::int32_t part;
    };
    static constexpr Place place(std::int32_t odds) noexcept {
        const std::int32_t from_zero = odds + odds_limit + 1;
        return {static_cast<std::size_t>(from_zero >> 7), from_zero & 127};
    }
    std::array<std::int32_t, 33> table_{};
};

}  // namespace ladder::calibrated
