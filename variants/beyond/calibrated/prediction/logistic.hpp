// Probabilities and their logarithmic odds, by integer arithmetic alone: the same tables from every compiler.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace ladder::calibrated {

// Logarithmic odds are held in 256ths, within -2047..2047 (probabilities from 0.0003 to 0.9997).
inline constexpr int odds_limit = 2047;
inline constexpr int probability_bits = 16;  // of squash() and of everything that is multiplied up
inline constexpr std::int32_t certain = 1 << probability_bits;

namespace detail {

__extension__ using Wide = unsigned __int128;
inline constexpr std::uint64_t one = std::uint64_t{1} << 60;
inline constexpr std::uint64_t exp_step = 1148426689630428644ULL;  // e^(-1/256) of 2^60, rounded

constexpr std::array<std::uint16_t, 2 * odds_limit + 1> make_squash() {
    std::array<std::uint16_t, 2 * odds_limit + 1> table{};
    std::uint64_t power = one;  // e^(-x/256)
    for (std::size_t x = 0; x <= odds_limit; ++x) {
        const auto p =
            static_cast<std::uint32_t>((static_cast<Wide>(one) << probability_bits) / (one + power));
        table[odds_limit + x] = static_cast<std::uint16_t>(p);
        table[odds_limit - x] = static_cast<std::uint16_t>((1U << probability_bits) - p);
        power = static_cast<std::uint64_t>((static_cast<Wide>(power) * exp_step) >> 60);
    }
    return table;
}
inline constexpr auto squash_table = make_squash();

// For each of 4,096 steps of probability the odds at its middle.
constexpr std::array<std::int16_t, 4096> make_stretch() {
    std::array<std::int16_t, 4096> table{};
    std::size_t x = 0;
    for (std::uint32_t p = 0; p < 4096; ++p) {
        while (x < 2 * odds_limit && squash_table[x] < p * 16 + 8) {
            ++x;
        }
        table[p] = static_cast<std::int16_t>(static_cast<int>(x) - odds_limit);
    }
    return table;
}
inline constexpr auto stretch_table = make_stretch();

}  // namespace detail

// Odds in 256ths to a probability of 16 bits.
[[nodiscard]] constexpr std::int32_t squash(std::int32_t odds) noexcept {
    return detail::squash_table[static_cast<std::size_t>(std::clamp(odds, -odds_limit, odds_limit) +
                                                         odds_limit)];
}

// A probability of 12 bits to odds in 256ths.
[[nodiscard]] constexpr std::int32_t stretch(std::uint32_t probability12) noexcept {
    return detail::stretch_table[probability12];
}

}  // namespace ladder::calibrated
