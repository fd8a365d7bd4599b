// Logarithms, powers and random numbers in integers alone: every compiler and machine gives the same.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/hash.hpp"

namespace ladder::synthetic {

inline constexpr int log_bits = 24;  // fractional bits of a logarithm to base 2
inline constexpr std::int64_t log_one = std::int64_t{1} << log_bits;

__extension__ using Wide = unsigned __int128;

[[nodiscard]] constexpr std::uint64_t square_root(Wide value) noexcept {
    Wide root = 0;
    for (Wide bit = Wide{1} << 63; bit != 0; bit >>= 1) {
        const Wide candidate = root | bit;
        if (candidate * candidate <= value) {
            root = candidate;
        }
    }
    return static_cast<std::uint64_t>(root);
}

// log2 and 2^x in fixed point: tables of 4096 steps, straight lines between.
class FixedMath {
public:
    FixedMath() {
        std::array<std::uint64_t, table_bits> roots{};  // 2^(1/2), 2^(1/4), ... with 62 fractional bits
        std::uint64_t power = std::uint64_t{2} << 62;
        for (std::uint64_t& root : roots) {
            power = square_root(Wide{power} << 62);
            root = power;
        }
        for (std::size_t i = 0; i <= steps; ++i) {
            exp2_[i] = exp2_entry(i, roots);
            log2_[i] = log2_entry(i);
        }
    }

    // -log2(value / 2^64) for value > 0: 0 to 64, log_bits fractional bits.
    [[nodiscard]] std::int64_t minus_log2(std::uint64_t value) const noexcept {
        const int zeros = std::countl_zero(value);
        const std::uint64_t mantissa = (value << zeros) << 1;  // fraction after the leading one
        const std::size_t index = mantissa >> (64 - table_bits);
        const auto part = static_cast<std::int64_t>((mantissa << table_bits) >> (64 - log_bits));
        const std::int64_t fraction = log2_[index] + (((log2_[index + 1] - log2_[index]) * part) >> log_bits);
        return (std::int64_t{zeros} + 1) * log_one - fraction;
    }

    // 2^exponent with `value_bits` fractional bits; exponents beyond 2^40 are cut to it.
    static constexpr int value_bits = 20;
    [[nodiscard]] std::uint64_t exp2(std::int64_t exponent) const noexcept {
        const std::int64_t whole = std::min<std::int64_t>(exponent >> log_bits, 40);
        if (whole < -value_bits) {
            return 0;
        }
        const auto fraction = static_cast<std::uint64_t>(exponent & (log_one - 1));
        const std::size_t index = fraction >> (log_bits - table_bits);
        const std::uint64_t part = fraction & ((1U << (log_bits - table_bits)) - 1);
        const std::uint64_t low = exp2_[index];
        const std::uint64_t mantissa = low + (((exp2_[index + 1] - low) * part) >> (log_bits - table_bits));
        const std::int64_t shift = mantissa_bits - value_bits - whole;
        return shift >= 0 ? mantissa >> shift : mantissa << -shift;
    }

private:
    static constexpr int table_bits = 12;
    static constexpr std::size_t steps = std::size_t{1} << table_bits;
    static constexpr int mantissa_bits = 40;

    [[nodiscard]] static std::uint64_t exp2_entry(std::size_t i,
                                                  const std::array<std::uint64_t, table_bits>& roots) {
        if (i == steps) {
            return std::uint64_t{2} << mantissa_bits;
        }
        std::uint64_t product = std::uint64_t{1} << 62;
        for (std::size_t bit = 0; bit < table_bits; ++bit) {
            if ((i >> (table_bits - 1 - bit)) & 1) {
                product = static_cast<std::uint64_t>((Wide{product} * roots[bit]) >> 62);
            }
        }
        return product >> (62 - mantissa_bits);
    }

    // log2(1 + i / steps), bit by bit: squaring doubles a logarithm.
    [[nodiscard]] static std::int64_t log2_entry(std::size_t i) {
        if (i == steps) {
            return log_one;
        }
        std::uint64_t value = (std::uint64_t{1} << 62) + (std::uint64_t{i} << (62 - table_bits));
        std::int64_t result = 0;
        for (int bit = 0; bit < log_bits; ++bit) {
            const Wide square = (Wide{value} * value) >> 62;
            const bool carry = square >= (Wide{2} << 62);
            value = static_cast<std::uint64_t>(carry ? square >> 1 : square);
            result = (result << 1) | (carry ? 1 : 0);
        }
        return result;
    }

    std::array<std::uint64_t, steps + 1> exp2_{};
    std::array<std::int64_t, steps + 1> log2_{};
};

// The salts keep the uses of one seed apart; all odd, with mixed bits.
[[nodiscard]] inline std::uint64_t mix(std::uint64_t a, std::uint64_t b) noexcept {
    const std::uint64_t folded = multiply_fold(a ^ 0x9e3779b97f4a7c15ULL, b ^ 0xd1b54a32d192ed03ULL);
    return multiply_fold(folded ^ 0x8ebc6af09c88c6e3ULL, 0x589965cc75374cc3ULL ^ b);
}

class Random {
public:
    explicit Random(std::uint64_t seed) noexcept : state_(mix(seed, 0x1d8e4e27c47d124fULL)) {}

    [[nodiscard]] std::uint64_t next() noexcept {
        state_ += 0xa0761d6478bd642fULL;
        return multiply_fold(state_, state_ ^ 0xe7037ed1a0b428dbULL);
    }

    // 0 to limit - 1.
    [[nodiscard]] std::uint64_t below(std::uint64_t limit) noexcept {
        return static_cast<std::uint64_t>((Wide{next()} * limit) >> 64);
    }

private:
    std::uint64_t state_;
};

}  // namespace ladder::synthetic
