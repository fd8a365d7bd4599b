// What is known of one context: its best successor, the most recent other one, and their counts.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/types.hpp"

namespace ladder::calibrated {

// Counts of a node, in one word with what its key has beside 32 bits:
//   extra of the key (15) | last was not A (1) | n (6) | b (5) | a (5)
struct Counts {
    std::uint32_t a = 0;       // how often A followed
    std::uint32_t b = 0;       // how often B followed since it came in
    std::uint32_t n = 0;       // how often anything followed
    std::uint32_t missed = 0;  // whether the last successor was another than A

    static constexpr unsigned extra_shift = 17;
    static constexpr std::uint32_t most = 30;  // of n; more is halved

    [[nodiscard]] static constexpr Counts of(std::uint32_t word) noexcept {
        return {word & 31, word >> 5 & 31, word >> 10 & 63, word >> 16 & 1};
    }
    [[nodiscard]] constexpr std::uint32_t word(std::uint32_t extra) const noexcept {
        return a | b << 5 | n << 10 | missed << 16 | extra << extra_shift;
    }
};

// The state that calibration sees: how often A followed, how often not, whether last, and what B has.
inline constexpr std::size_t node_states = 9 * 9 * 2 * 4;

inline constexpr auto count_buckets = [] {
    std::array<std::uint8_t, 64> table{};
    for (std::size_t i = 0; i < table.size(); ++i) {
        table[i] = static_cast<std::uint8_t>(i <= 4 ? i : i <= 6 ? 5 : i <= 9 ? 6 : i <= 15 ? 7 : 8);
    }
    return table;
}();

[[nodiscard]] constexpr std::uint32_t state_of(const Counts& c) noexcept {
    return ((count_buckets[c.a] * 9U + count_buckets[c.n - c.a]) * 2U + c.missed) * 4U + std::min(c.b, 3U);
}

// Counts one more successor.
constexpr void count_successor(Token& first, Token& second, Counts& c, Token token) noexcept {
    constexpr std::uint32_t enough = 16;
    if (token == first && c.n >= enough && c.a == c.n) {
        c.missed = 0;
        return;
    }
    if (c.n >= Counts::most) {
        c.a = (c.a + 1) / 2;
        c.b /= 2;
        c.n = std::max(c.n / 2, c.a + c.b);
    }
    ++c.n;
    c.missed = token != first;
    if (token == first) {
        ++c.a;
    } else if (token != second || c.b == 0) {
        second = token;
        c.b = 1;
    } else if (++c.b > c.a) {
        std::swap(first, second);
        std::swap(c.a, c.b);
        c.missed = 0;
    }
}

// Takes one occurrence back. False if nothing is left.
constexpr bool uncount_successor(Token& first, Token& second, Counts& c, Token token) noexcept {
    if (token == first && c.a > 0) {
        --c.a;
        if (c.b > c.a) {
            std::swap(first, second);
            std::swap(c.a, c.b);
        }
    } else if (token == second) {
        c.b -= c.b > 0 ? 1 : 0;
        second = c.b == 0 ? null_token : second;
    }
    c.n = std::max(c.n - 1, c.a + c.b);
    return c.a > 0;
}

}  // namespace ladder::calibrated
