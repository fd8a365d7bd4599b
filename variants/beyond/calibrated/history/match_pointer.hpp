// Where in a text the present one goes on, kept through edits.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/types.hpp"
#include "beyond/calibrated/history/indexed_text.hpp"

namespace ladder::calibrated {

// A place in a text, for how many tokens it has agreed, and its last 16 comparisons.
struct MatchPointer {
    std::uint32_t place = 0;  // of the token predicted next; 0: none
    std::uint32_t length = 0;
    std::uint32_t misses = 0;  // a bit a comparison, the newest lowest

    static constexpr std::uint32_t long_enough = 16;
    static constexpr std::uint32_t length_limit = 64;
    static constexpr int most_misses = 8;  // of them; more end it
    static constexpr std::size_t n_states = 16 * 9 * 2;

    // Past `token`. A mismatch does not end it: texts are edited, and go on as before.
    void advance(const IndexedText& text, Token token) noexcept {
        if (place == 0) {
            return;
        }
        const bool hit = text.at(place) == token;
        misses = (misses << 1 | (hit ? 0U : 1U)) & 0xffff;
        length = hit ? std::min(length + 1, length_limit) : 0;
        place = text.after(place);
        if (std::popcount(misses) > most_misses) {
            *this = {};
        }
    }

    [[nodiscard]] std::size_t state() const noexcept {
        const auto missed = static_cast<std::size_t>(std::popcount(misses));
        return (length_buckets[length] * 9U + missed) * 2U + ((misses & 15) != 0 ? 1U : 0U);
    }
    // None, just missed, short, long: chooses among the mixer's weights.
    [[nodiscard]] std::size_t kind() const noexcept {
        return place == 0 ? 0 : length == 0 ? 1 : length < long_enough ? 2 : 3;
    }

    [[nodiscard]] bool is_sound(const IndexedText& text) const noexcept {
        return place <= text.size() && length <= length_limit && misses <= 0xffff &&
               std::popcount(misses) <= most_misses;
    }

private:
    static constexpr auto length_buckets = [] {
        constexpr std::array<std::size_t, 16> from = {0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 32, 64};
        std::array<std::uint8_t, length_limit + 1> table{};
        for (std::size_t i = 0, bucket = 0; i < table.size(); ++i) {
            bucket += bucket + 1 < from.size() && i >= from[bucket + 1] ? 1 : 0;
            table[i] = static_cast<std::uint8_t>(bucket);
        }
        return table;
    }();
};

// For how many tokens, at most 32, the end of `now` and what lies before `place` in `text` agree. The seam of
// a ring may be read across: what is there agrees by chance at most.
[[nodiscard]] inline std::uint32_t agreement(const IndexedText& text, std::uint32_t place,
                                             const IndexedText& now) noexcept {
    constexpr std::uint32_t most = 32;
    const std::uint32_t limit = std::min({most, place - 1, now.head() - 1});
    const Token* left = text.data() + place;
    const Token* right = now.data() + now.head();
    std::uint32_t n = 0;
    while (n < limit && left[-1 - static_cast<int>(n)] == right[-1 - static_cast<int>(n)]) {
        ++n;
    }
    return n;
}

// Takes the place that the index of n-grams of one length knows, if it agrees for longer. A pointer that has
// agreed for twice that length is left alone.
inline void seek(MatchPointer& pointer, const IndexedText& text, std::uint32_t place, std::size_t at_least,
                 const IndexedText& now) noexcept {
    if (place == 0 || place == pointer.place || pointer.length >= 2 * at_least) {
        return;
    }
    const std::uint32_t length = agreement(text, place, now);
    if (length >= at_least && length > pointer.length) {
        pointer = {place, length, 0};
    }
}

}  // namespace ladder::calibrated
