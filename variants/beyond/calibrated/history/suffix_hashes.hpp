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

// Of all contexts and match n-grams at one place; those longer than the text mean nothing.
struct SuffixHashes {
    std::array<ContextKey, n_orders> keys;
    std::array<std::uint64_t, n_matches> matches;
    std::size_t known;  // orders that the text is long enough for
};

// The last tokens of a text, spread, the newest first; slides forward as tokens are appended or drafted.
class SuffixWindow {
public:
    void push(Token token) noexcept {
        for (std::size_t i = window_length - 1; i > 0; --i) {
            spread_[i] = spread_[i - 1];
        }
        spread_[0] = spread(token);
        ++length_;
    }
    [[nodiscard]] std::size_t length() const noexcept { return length_; }

    [[nodiscard]] SuffixHashes hashes() const noexcept {
        std::array<std::uint64_t, window_length + 1> sums{};  // of the last 0, 1, 2, ... tokens
        for (std::size_t i = 0; i < window_length; ++i) {
            sums[i + 1] = sums[i] + spread_[i] * base_powers[i];
        }
        SuffixHashes result;
        result.known = 0;
        for (std::size_t order = 0; order < n_orders; ++order) {
            result.keys[order] = key_of(finish(sums[orders[order]], orders[order]), order);
            result.known += orders[order] <= length_ ? 1 : 0;
        }
        for (std::size_t i = 0; i < n_matches; ++i) {
            result.matches[i] = finish(sums[match_lengths[i]], match_lengths[i]);
        }
        return result;
    }

private:
    std::array<std::uint64_t, window_length> spread_{};
    std::size_t length_ = 0;
};

}  // namespace ladder::calibrated
