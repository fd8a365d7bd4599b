// How often a source in a given state was right: adaptive probabilities.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "beyond/calibrated/prediction/logistic.hpp"

namespace ladder::calibrated {

// A probability of 22 bits and how many truths made it, of 10: the fewer, the faster it moves.
class Counter {
public:
    constexpr Counter() noexcept : Counter(1U << 21) {}
    constexpr explicit Counter(std::uint32_t probability22) noexcept : word_(probability22 << 10) {}

    [[nodiscard]] constexpr std::uint32_t probability12() const noexcept { return word_ >> 20; }
    [[nodiscard]] constexpr std::int32_t odds() const noexcept { return stretch(probability12()); }
    [[nodiscard]] constexpr std::uint32_t word() const noexcept { return word_; }

    constexpr void train(bool truth, std::uint32_t limit) noexcept {
        const std::uint32_t count = word_ & 1023;
        const auto p = static_cast<std::int64_t>(word_ >> 10);
        const std::int64_t target = truth ? (1 << 22) - 1 : 0;
        const std::int64_t moved = p + (((target - p) * rates[count]) >> 16);
        word_ = static_cast<std::uint32_t>(moved) << 10 | (count < limit ? count + 1 : count);
    }

private:
    // 1 / (count + 1.6), of 2^16.
    static constexpr auto rates = [] {
        std::array<std::int32_t, 1024> table{};
        for (std::size_t i = 0; i < table.size(); ++i) {
            table[i] = static_cast<std::int32_t>(655360 / (10 * i + 16));
        }
        return table;
    }();
    std::uint32_t word_;
};

}  // namespace ladder::calibrated
