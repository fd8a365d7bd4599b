// A text, and where its n-grams of two lengths last ended.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/check.hpp"
#include "base/types.hpp"
#include "beyond/calibrated/history/growing_array.hpp"
#include "beyond/calibrated/history/suffix_hashes.hpp"

namespace ladder::calibrated {

// Places by the hash of the n-gram before them, direct-mapped: the newest wins. As many slots as tokens,
// growing one by one (linear hashing) without moving an entry: an n-gram not met since its slot was split is
// still found where it was. A place is never trusted: whoever takes it compares the text.
class PlaceIndex {
public:
    PlaceIndex() { slots_.push_back(0); }
    [[nodiscard]] std::uint32_t find(std::uint64_t hash) const noexcept {
        std::size_t slot = hash & mask_;
        const std::size_t half = (mask_ + 1) / 2;
        slot -= slot < slots_.size() ? 0 : half;
        const std::uint32_t place = slots_[slot];
        return place != 0 || slot < half ? place : slots_[slot - half];
    }
    void put(std::uint64_t hash, std::uint32_t place) noexcept { slots_[slot_of(hash)] = place; }
    void prefetch(std::uint64_t hash) const noexcept { __builtin_prefetch(&slots_[slot_of(hash)]); }
    void grow() {
        if (slots_.size() > mask_) {
            mask_ = 2 * mask_ + 1;
        }
        slots_.push_back(0);
    }
    [[nodiscard]] std::size_t bytes() const noexcept { return slots_.bytes(); }

    // `size` slots that name places of a text of `size` places, the next one included.
    template <class Archive>
    void archive(Archive& archive, std::size_t size) {
        archive.array(slots_);
        if constexpr (Archive::loads) {
            archive.require(slots_.size() == size, "an index does not fit its text");
            for (std::size_t i = 0; i < size; ++i) {
                archive.require(slots_[i] <= size, "an index names a place behind its text");
            }
            mask_ = std::bit_ceil(size) - 1;
        }
    }

private:
    [[nodiscard]] std::size_t slot_of(std::uint64_t hash) const noexcept {
        const std::size_t slot = hash & mask_;
        return slot < slots_.size() ? slot : slot - (mask_ + 1) / 2;
    }
    GrowingArray<std::uint32_t> slots_;
    std::size_t mask_ = 0;
};

// A ring of tokens: beyond `capacity` the newest overwrite the oldest. Place 0 is never used, and means none.
class IndexedText {
public:
    static constexpr std::uint32_t least_capacity = 64;

    explicit IndexedText(std::uint32_t capacity) : capacity_(capacity) {
        LADDER_CHECK(capacity >= least_capacity && capacity < ~std::uint32_t{0} - 64);
        tokens_.push_back(null_token);
    }

    // The token at a place; null_token where nothing is.
    [[nodiscard]] Token at(std::uint32_t place) const noexcept {
        return place < tokens_.size() && place != head_ ? tokens_[place] : null_token;
    }
    [[nodiscard]] std::uint32_t after(std::uint32_t place) const noexcept {
        return place == capacity_ ? 1 : place + 1;
    }
    [[nodiscard]] std::uint32_t ahead(std::uint32_t place, std::uint32_t by) const noexcept {
        return static_cast<std::uint32_t>((std::uint64_t{place} - 1 + by) % capacity_) + 1;
    }
    [[nodiscard]] std::uint32_t capacity() const noexcept { return capacity_; }
    // Places, place 0 included.
    [[nodiscard]] std::size_t size() const noexcept { return tokens_.size(); }
    // The tokens as they lie, from place 0 on.
    [[nodiscard]] const Token* data() const noexcept { return tokens_.data(); }
    // Where the next token goes.
    [[nodiscard]] std::uint32_t head() const noexcept { return head_; }

    void push(Token token) {
        if (head_ == tokens_.size()) {
            tokens_.push_back(token);
            for (PlaceIndex& index : indexes_) {
                index.grow();
            }
        } else {
            tokens_[head_] = token;
        }
        head_ = after(head_);
    }
    // Says that the n-grams with these hashes, as far as they are not longer than `run`, end where the text
    // ends.
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

    template <class Archive>
    void archive(Archive& archive) {
        archive.value(capacity_);
        archive.value(head_);
        archive.array(tokens_);
        if constexpr (Archive::loads) {
            const std::size_t size = tokens_.size();
            const bool full = size == std::size_t{capacity_} + 1;
            archive.require(capacity_ >= least_capacity, "a ring is too short");
            archive.require(size >= 1 && size <= std::size_t{capacity_} + 1,
                            "a text is longer than its ring");
            archive.require(head_ >= 1 && (full ? head_ <= capacity_ : head_ == size),
                            "a text ends elsewhere");
            for (std::size_t i = 0; i < size; ++i) {
                archive.require(tokens_[i] >= null_token, "a text holds a token that is none");
            }
        }
        for (PlaceIndex& index : indexes_) {
            index.archive(archive, tokens_.size());
        }
    }

private:
    std::uint32_t capacity_;
    std::uint32_t head_ = 1;
    GrowingArray<Token> tokens_;
    std::array<PlaceIndex, n_matches> indexes_;
};

}  // namespace ladder::calibrated
