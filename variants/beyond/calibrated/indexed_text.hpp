// A text, and where its n-grams of two lengths last ended.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/types.hpp"
#include "beyond/calibrated/segmented_array.hpp"
#include "beyond/calibrated/suffix_hashes.hpp"

namespace ladder::calibrated {

// Places by the hash of the n-gram before them, direct-mapped: the newest wins. As many slots as tokens, growing one
// by one. A place is never trusted: whoever takes it compares the text.
class PlaceIndex {
public:
    PlaceIndex() { slots_.push_back(0); }
    [[nodiscard]] std::uint32_t find(std::uint64_t hash) const noexcept { return slots_[slot_of(hash)]; }
    void put(std::uint64_t hash, std::uint32_t place) noexcept { slots_[slot_of(hash)] = place; }
    void prefetch(std::uint64_t hash) const noexcept { __builtin_prefetch(&slots_[slot_of(hash)]); }
    [[nodiscard]] std::size_t size() const noexcept { return slots_.size(); }
    [[nodiscard]] std::size_t bytes() const noexcept { return slots_.bytes(); }

    // Splits one slot; `hash_before` gives the hash of the n-gram before a place.
    template <class HashBefore>
    void grow(HashBefore&& hash_before) {
        const std::size_t added = slots_.size();
        if (added > mask_) {
            mask_ = 2 * mask_ + 1;
        }
        std::uint32_t& to = slots_.push_back(0);
        std::uint32_t& from = slots_[added - (mask_ + 1) / 2];
        if (from != 0 && (hash_before(from) & mask_) == added) {
            to = std::exchange(from, 0);
        }
    }

private:
    [[nodiscard]] std::size_t slot_of(std::uint64_t hash) const noexcept {
        const std::size_t slot = hash & mask_;
        return slot < slots_.size() ? slot : slot - (mask_ + 1) / 2;
    }
    SegmentedArray<std::uint32_t> slots_;
    std::size_t mask_ = 0;
};

// A ring of tokens: beyond `capacity` the newest overwrite the oldest. Place 0 is never used, and means none.
class IndexedText {
public:
    explicit IndexedText(std::uint32_t capacity) : capacity_(capacity) { tokens_.push_back(null_token); }

    // The token at a place; null_token where nothing is.
    [[nodiscard]] Token at(std::uint32_t place) const noexcept {
        return place < tokens_.size() && place != head_ ? tokens_[place] : null_token;
    }
    [[nodiscard]] std::uint32_t after(std::uint32_t place) const noexcept {
        return place == capacity_ ? 1 : place + 1;
    }
    [[nodiscard]] std::uint32_t before(std::uint32_t place) const noexcept {
        return place == 1 ? static_cast<std::uint32_t>(tokens_.size() - 1) : place - 1;
    }
    [[nodiscard]] std::uint32_t ahead(std::uint32_t place, std::uint32_t by) const noexcept {
        return static_cast<std::uint32_t>((std::uint64_t{place} - 1 + by) % capacity_) + 1;
    }
    // Where the next token goes.
    [[nodiscard]] std::uint32_t head() const noexcept { return head_; }

    void push(Token token) {
        if (head_ == tokens_.size()) {
            tokens_.push_back(token);
            for (std::size_t i = 0; i < n_matches; ++i) {
                indexes_[i].grow([&](std::uint32_t place) { return hash_before(place, match_lengths[i]); });
            }
        } else {
            tokens_[head_] = token;
        }
        head_ = after(head_);
    }
    // Says that the n-grams with these hashes, as far as they are not longer than `run`, end where the text ends.
    void mark(const std::array<std::uint64_t, n_matches>& hashes, std::size_t run) noexcept {
        for (std::size_t i = 0; i < n_matches; ++i) {
            if (run >= match_lengths[i]) {
                indexes_[i].put(hashes[i], head_);
            }
        }
    }
    void blank(std::uint32_t place) noexcept { tokens_[place] = null_token; }

    // The index of n-grams of the i-th length.
    [[nodiscard]] const PlaceIndex& index(std::size_t i) const noexcept { return indexes_[i]; }

    [[nodiscard]] std::size_t bytes() const noexcept {
        return tokens_.bytes() + indexes_[0].bytes() + indexes_[1].bytes();
    }

private:
    [[nodiscard]] std::uint64_t hash_before(std::uint32_t place, std::size_t length) const noexcept {
        std::uint64_t sum = 0;
        for (std::size_t i = 0; i < length; ++i) {
            place = before(place);
            sum += spread(tokens_[place]) * base_powers[i];
        }
        return finish(sum, length);
    }

    std::uint32_t capacity_;
    std::uint32_t head_ = 1;
    SegmentedArray<Token> tokens_;
    std::array<PlaceIndex, n_matches> indexes_;
};

}  // namespace ladder::calibrated
