// What a draft reads of the dynamic cache.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/types.hpp"
#include "beyond/summary_index/ngram_table.hpp"

namespace ladder::summary {

// The dynamic cache's n-grams that pass their threshold, copied out of it: few, so that they stay in the
// processor's caches where the dynamic cache does not. A bit per hash stands in front, for most n-grams are
// not among them.
class PassingNodes {
public:
    // Null unless the n-gram passes, or did at some time: what it was when it ceased to is kept, and fails
    // too.
    [[nodiscard]] const Node* find(const Ngram& key, std::uint64_t hash) const noexcept {
        return may_hold(hash) ? nodes_.find(key, hash) : nullptr;
    }

    // Takes what has become of an n-gram that passes or just ceased to.
    template <class HashOf>
    void put(const Node& node, std::uint64_t hash, HashOf&& hash_of) {
        nodes_.reserve(1, hash_of);
        nodes_.find_or_insert(node.key, hash) = node;
        set(hash);
        if (nodes_.size() * 12 > words_.size() * 64) [[unlikely]] {  // "maybe" too often
            widen(hash_of);
        }
    }

    void clear() noexcept {
        nodes_.clear();
        std::fill(words_.begin(), words_.end(), 0);
    }
    [[nodiscard]] std::size_t bytes() const noexcept {
        return nodes_.bytes() + words_.size() * sizeof(std::uint64_t);
    }

private:
    // A word and two bits of it, by the hash's low bits: the table's slots come from the top ones.
    [[nodiscard]] std::size_t word_of(std::uint64_t hash) const noexcept {
        return hash & (words_.size() - 1);
    }
    [[nodiscard]] static std::uint64_t bits_of(std::uint64_t hash) noexcept {
        return std::uint64_t{1} << (hash >> 32 & 63) | std::uint64_t{1} << (hash >> 38 & 63);
    }
    [[nodiscard]] bool may_hold(std::uint64_t hash) const noexcept {
        return (~words_[word_of(hash)] & bits_of(hash)) == 0;
    }
    void set(std::uint64_t hash) noexcept { words_[word_of(hash)] |= bits_of(hash); }

    template <class HashOf>
    void widen(HashOf&& hash_of) {
        words_.assign(words_.size() * 2, 0);
        for (std::size_t i = 0; i < nodes_.size(); ++i) {
            set(hash_of(nodes_.used(i).key));
        }
    }

    static constexpr unsigned first_node_bits = 10;
    static constexpr std::size_t first_words = std::size_t{1} << 13;  // 64 KB
    NgramTable nodes_{first_node_bits};
    std::vector<std::uint64_t> words_ = std::vector<std::uint64_t>(first_words);
};

}  // namespace ladder::summary
