// Hashes of the contexts that end at one place.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/types.hpp"

namespace ladder::calibrated {

inline constexpr std::size_t n_orders = 5;
inline constexpr std::array<std::size_t, n_orders> orders = {1, 2, 3, 4, 6};
inline constexpr std::size_t window_length = 16;  // tokens behind the longest context or match

// Where a context lies, and what tells it from the others there: 47 bits of its hash.
struct ContextKey {
    std::uint32_t key = 0;    // also chooses the line; never 0
    std::uint32_t extra = 0;  // 15 bits
};

[[nodiscard]] constexpr std::uint64_t spread(Token token) noexcept {
    return (static_cast<std::uint64_t>(static_cast<std::uint32_t>(token)) + 1) * 0x9e3779b97f4a7c15ULL;
}

namespace detail {
inline constexpr std::uint64_t base = 0xd1342543de82ef95ULL;
inline constexpr auto base_powers = [] {
    std::array<std::uint64_t, window_length> powers{1};
    for (std::size_t i = 1; i < powers.size(); ++i) {
        powers[i] = powers[i - 1] * base;
    }
    return powers;
}();
}  // namespace detail

[[nodiscard]] constexpr std::uint64_t finish(std::uint64_t sum, std::uint64_t length) noexcept {
    std::uint64_t h = (sum ^ length << 56) * 0xff51afd7ed558ccdULL;
    h ^= h >> 32;
    h *= 0xc4ceb9fe1a85ec53ULL;
    return h ^ h >> 29;
}

[[nodiscard]] constexpr ContextKey key_of(std::uint64_t hash) noexcept {
    const auto key = static_cast<std::uint32_t>(hash);
    return {key + (key == 0 ? 1U : 0U), static_cast<std::uint32_t>(hash >> 49)};
}

// The last tokens of a text, spread; slides forward as tokens are appended or drafted.
class SuffixWindow {
public:
    void push(Token token) noexcept {
        ++length_;
        spread_[length_ % window_length] = spread(token);
    }
    [[nodiscard]] std::size_t length() const noexcept { return length_; }

    // Hash of the last `n` tokens.
    [[nodiscard]] std::uint64_t hash(std::size_t n) const noexcept {
        std::uint64_t sum = 0;
        for (std::size_t i = 0; i < n; ++i) {
            sum += at(i) * detail::base_powers[i];
        }
        return finish(sum, n);
    }
    // Keys of the contexts of all orders; those longer than the text are not to be used.
    [[nodiscard]] std::array<ContextKey, n_orders> keys() const noexcept {
        std::array<ContextKey, n_orders> result;
        std::uint64_t sum = 0;
        for (std::size_t order = 0, i = 0; order < n_orders; ++order) {
            for (; i < orders[order]; ++i) {
                sum += at(i) * detail::base_powers[i];
            }
            result[order] = key_of(finish(sum, orders[order]));
        }
        return result;
    }
    [[nodiscard]] std::size_t orders_known() const noexcept {
        std::size_t known = 0;
        while (known < n_orders && orders[known] <= length_) {
            ++known;
        }
        return known;
    }

private:
    [[nodiscard]] std::uint64_t at(std::size_t back) const noexcept {
        return spread_[(length_ - back) % window_length];
    }
    std::array<std::uint64_t, window_length> spread_{};
    std::size_t length_ = 0;
};

}  // namespace ladder::calibrated
