// Where in an earlier text the present one goes on, kept through edits.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/types.hpp"
#include "beyond/calibrated/segmented_array.hpp"
#include "beyond/calibrated/suffix_hashes.hpp"

namespace ladder::calibrated {

// A text and the places where its n-grams of one length last ended. Direct-mapped: the newest place wins.
class IndexedText {
public:
    explicit IndexedText(std::size_t match_length) : match_length_(match_length) { slots_.push_back(0); }

    [[nodiscard]] std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(tokens_.size()); }
    [[nodiscard]] Token operator[](std::uint32_t i) const noexcept { return tokens_[i]; }
    [[nodiscard]] std::size_t match_length() const noexcept { return match_length_; }

    void push(Token token) { tokens_.push_back(token); }
    // The place after the newest n-gram with this hash; 0 if there is none.
    [[nodiscard]] std::uint32_t find(std::uint64_t hash) const noexcept { return slots_[slot_of(hash)]; }
    // Says that the n-gram with this hash ends where the text ends.
    void mark(std::uint64_t hash) {
        slots_[slot_of(hash)] = size();
        if (slots_.size() < size()) {
            split();
        }
    }
    [[nodiscard]] std::size_t bytes() const noexcept { return tokens_.bytes() + slots_.bytes(); }

private:
    [[nodiscard]] std::size_t slot_of(std::uint64_t hash) const noexcept {
        const std::size_t slot = hash & mask_;
        return slot < slots_.size() ? slot : slot - (mask_ + 1) / 2;
    }
    [[nodiscard]] std::uint64_t hash_before(std::uint32_t place) const noexcept {
        std::uint64_t sum = 0;
        for (std::uint32_t i = 0; i < match_length_; ++i) {
            sum += spread(tokens_[place - 1 - i]) * detail::base_powers[i];
        }
        return finish(sum, match_length_);
    }
    void split() {
        const std::size_t added = slots_.size();
        if (added > mask_) {
            mask_ = 2 * mask_ + 1;
        }
        std::uint32_t& to = slots_.push_back(0);
        std::uint32_t& from = slots_[added - (mask_ + 1) / 2];
        if (from != 0 && (hash_before(from) & mask_) == added) {
            to = from;
            from = 0;
        }
    }

    std::size_t match_length_;
    SegmentedArray<Token> tokens_;
    SegmentedArray<std::uint32_t> slots_;
    std::size_t mask_ = 0;
};

// A place in a text, how long what lies before it has agreed, and the last 16 comparisons (1: a miss).
struct MatchPointer {
    std::uint32_t place = 0;  // 0: none
    std::uint32_t length = 0;
    std::uint32_t misses = 0;

    static constexpr std::uint32_t miss_window = 0xffff;
    static constexpr int most_misses = 8;
    static constexpr std::size_t states = 16 * 9 * 2;

    [[nodiscard]] Token predicted(const IndexedText& text) const noexcept {
        return place != 0 && place < text.size() ? text[place] : null_token;
    }
    // Goes on past `token`: the text may have been edited there.
    void advance(const IndexedText& text, Token token) noexcept {
        if (place == 0) {
            return;
        }
        const bool hit = predicted(text) == token;
        misses = (misses << 1 | (hit ? 0U : 1U)) & miss_window;
        length = hit ? std::min(length + 1, 1000U) : 0;
        ++place;
        if (std::popcount(misses) > most_misses) {
            *this = {};
        }
    }
    [[nodiscard]] std::size_t state() const noexcept {
        static constexpr auto buckets = [] {
            std::array<std::uint8_t, 65> table{};
            for (std::size_t i = 0; i < table.size(); ++i) {
                table[i] = static_cast<std::uint8_t>(i < 8    ? i
                                                     : i < 10 ? 8
                                                     : i < 12 ? 9
                                                     : i < 16 ? 10
                                                     : i < 20 ? 11
                                                     : i < 24 ? 12
                                                     : i < 32 ? 13
                                                     : i < 64 ? 14
                                                              : 15);
            }
            return table;
        }();
        const auto missed = static_cast<std::size_t>(std::popcount(misses));
        return (buckets[std::min(length, 64U)] * 9U + missed) * 2U + ((misses & 15) != 0 ? 1U : 0U);
    }
    // 0 none, 1 just missed, 2 short, 3 long: chooses weights.
    [[nodiscard]] std::size_t kind() const noexcept {
        return place == 0 ? 0 : length == 0 ? 1 : length < 16 ? 2 : 3;
    }
};

// How many tokens before `place` equal the end of `now`, at most `most`.
[[nodiscard]] inline std::uint32_t agreement(const IndexedText& text, std::uint32_t place, const IndexedText& now,
                                             std::uint32_t most) noexcept {
    const std::uint32_t limit = std::min({most, place, now.size()});
    std::uint32_t n = 0;
    while (n < limit && text[place - 1 - n] == now[now.size() - 1 - n]) {
        ++n;
    }
    return n;
}

}  // namespace ladder::calibrated
