// Hashes of the contexts that end at one place.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/types.hpp"

namespace ladder::calibrated {

inline constexpr std::size_t n_orders = 5;
inline constexpr std::array<std::size_t, n_orders> orders = {1, 2, 3, 4, 6};
inline constexpr std::size_t n_matches = 2;
inline constexpr std::array<std::size_t, n_matches> match_lengths = {4, 8};  // n-grams whose places are kept
inline constexpr std::size_t window_length = 8;                              // the longest of them

// Where a context lies, and what tells it from the others there: 44 bits of its hash, and its order.
struct ContextKey {
    std::uint32_t key = 0;    // also chooses the bucket; never 0
    std::uint32_t extra = 0;  // order (3 bits) above 12 bits of hash
};

[[nodiscard]] constexpr std::uint64_t spread(Token token) noexcept {
    return (std::uint64_t{static_cast<std::uint32_t>(token)} + 1) * 0x9e3779b97f4a7c15ULL;
}

inline constexpr auto base_powers = [] {
    std::array<std::uint64_t, window_length> powers{1};
    for (std::size_t i = 1; i < powers.size(); ++i) {
        powers[i] = powers[i - 1] * 0xd1342543de82ef95ULL;
    }
    return powers;
}();

[[nodiscard]] constexpr std::uint64_t finish(std::uint64_t sum, std::size_t length) noexcept {
    std::uint64_t h = (sum ^ std::uint64_t{length} << 56) * 0xff51afd7ed558ccdULL;
    h ^= h >> 32;
    h *= 0xc4ceb9fe1a85ec53ULL;
    return h ^ h >> 29;
}

[[nodiscard]] constexpr ContextKey key_of(std::uint64_t hash, std::size_t order) noexcept {
    const auto key = static_cast<std::uint32_t>(hash);
    return {key + (key == 0 ? 1U : 0U),
            static_cast<std::uint32_t>(order) << 12 | static_cast<std::uint32_t>(hash >> 52)};
}

using ContextKeys = std::array<ContextKey, n_orders>;

// The last tokens of a text, spread; slides forward as tokens are appended or drafted.
class SuffixWindow {
public:
    void push(Token token) noexcept {
        ++length_;
        spread_[length_ % window_length] = spread(token);
    }
    [[nodiscard]] std::size_t length() const noexcept { return length_; }

    // Of the last `n` tokens.
    [[nodiscard]] std::uint64_t hash(std::size_t n) const noexcept {
        std::uint64_t sum = 0;
        for (std::size_t i = 0; i < n; ++i) {
            sum += back(i) * base_powers[i];
        }
        return finish(sum, n);
    }
    // Of the contexts of all orders; those longer than the text mean nothing.
    [[nodiscard]] ContextKeys keys() const noexcept {
        ContextKeys result;
        std::uint64_t sum = 0;
        for (std::size_t order = 0, i = 0; order < n_orders; ++order) {
            for (; i < orders[order]; ++i) {
                sum += back(i) * base_powers[i];
            }
            result[order] = key_of(finish(sum, orders[order]), order);
        }
        return result;
    }
    // How many orders the text is long enough for.
    [[nodiscard]] std::size_t known() const noexcept {
        std::size_t known = 0;
        while (known < n_orders && orders[known] <= length_) {
            ++known;
        }
        return known;
    }

private:
    [[nodiscard]] std::uint64_t back(std::size_t i) const noexcept {
        return spread_[(length_ - i) % window_length];
    }
    std::array<std::uint64_t, window_length> spread_{};
    std::size_t length_ = 0;
};

}  // namespace ladder::calibrated
