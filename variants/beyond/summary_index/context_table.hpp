// The context cache: n-grams in the order of their arrival, behind a small index.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/check.hpp"
#include "base/types.hpp"
#include "beyond/summary_index/node.hpp"

namespace ladder::summary {

// The four n-grams that one position adds lie side by side, and nothing lies between the nodes: they and the
// index, four bytes a slot, fit the second-level cache. An n-gram that is not there costs no look at a node,
// because an index entry keeps those bits of its hash that the node's number leaves.
class ContextTable {
public:
    explicit ContextTable(unsigned first_bits) { resize(first_bits); }

    [[nodiscard]] std::size_t size() const noexcept { return nodes_.size(); }

    // Null if the n-gram is not there.
    [[nodiscard]] const Node* find(const Ngram& key, std::uint64_t hash) const noexcept {
        const std::uint32_t tag = tag_of(hash);
        for (std::size_t slot = hash >> shift_;; slot = (slot + 1) & slot_mask_) {
            const std::uint32_t entry = index_[slot];
            if (entry == vacant) {
                return nullptr;
            }
            if ((entry & tag_mask_) == tag) {
                const Node& node = nodes_[entry & ~tag_mask_];
                if (node.key == key) [[likely]] {
                    return &node;
                }
            }
        }
    }

    // Counts one occurrence of `token` after an n-gram that find() gave, or that is known to be new. The
    // caller has reserved.
    void count(const Node& node, Token token) { lists_.add(const_cast<Node&>(node), token, 1); }
    void insert(const Ngram& key, std::uint64_t hash, Token token) {
        place(hash, static_cast<std::uint32_t>(nodes_.size()));
        nodes_.push_back({key, token, 1, 1, no_list});
    }

    // Room for `more` n-grams without moving a node. True if nodes moved to make it.
    template <class HashOf>
    bool reserve(std::size_t more, HashOf&& hash_of) {
        if (nodes_.size() + more <= room()) [[likely]] {
            return false;
        }
        grow(more, hash_of);
        return true;
    }

    [[nodiscard]] const Node& operator[](std::size_t i) const noexcept { return nodes_[i]; }
    [[nodiscard]] const NodeLists& lists() const noexcept { return lists_; }

    // Keeps its memory: it is filled again every chunk.
    void clear() noexcept {
        std::fill(index_.begin(), index_.end(), vacant);
        nodes_.clear();
        lists_.clear();
    }
    [[nodiscard]] std::size_t bytes() const noexcept {
        return index_.capacity() * sizeof(std::uint32_t) + nodes_.capacity() * sizeof(Node) + lists_.bytes();
    }

private:
    // Half the slots, so that a probe is short and a node's number has one bit less than a slot's; and one
    // less, so that no entry is all ones.
    [[nodiscard]] std::size_t room() const noexcept { return index_.size() / 2 - 1; }
    [[nodiscard]] std::uint32_t tag_of(std::uint64_t hash) const noexcept {
        return static_cast<std::uint32_t>(hash) & tag_mask_;
    }

    void place(std::uint64_t hash, std::uint32_t number) noexcept {
        std::size_t slot = hash >> shift_;
        while (index_[slot] != vacant) {
            slot = (slot + 1) & slot_mask_;
        }
        index_[slot] = tag_of(hash) | number;
    }

    template <class HashOf>
    [[gnu::noinline]] void grow(std::size_t more, HashOf&& hash_of) {
        while (nodes_.size() + more > room()) {
            resize(64 - shift_ + 1);
        }
        for (std::size_t i = 0; i < nodes_.size(); ++i) {
            place(hash_of(nodes_[i].key), static_cast<std::uint32_t>(i));
        }
    }
    void resize(unsigned bits) {
        LADDER_CHECK(bits <= 32);  // 2^31 n-grams in one chunk
        shift_ = 64 - bits;
        slot_mask_ = (std::size_t{1} << bits) - 1;
        tag_mask_ = ~static_cast<std::uint32_t>(slot_mask_ >> 1);
        index_.assign(slot_mask_ + 1, vacant);
        nodes_.reserve(room());
    }

    static constexpr std::uint32_t vacant = 0xffffffffU;
    unsigned shift_ = 0;
    std::size_t slot_mask_ = 0;
    std::uint32_t tag_mask_ = 0;  // the bits of an index entry that are of the hash; the others number a node
    std::vector<std::uint32_t> index_;
    std::vector<Node> nodes_;
    NodeLists lists_;
};

}  // namespace ladder::summary
