// N-grams in one flat array, read where they lie: the dynamic cache, and the copies of its passing nodes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/platform.hpp"
#include "base/types.hpp"
#include "beyond/summary_index/node.hpp"
#include "formats/file_io.hpp"

namespace ladder::summary {

// Open addressing with linear probing over one flat array; nothing is ever erased alone. Slots are numbered
// by the top bits of the caller's hash.
class NgramTable {
public:
    explicit NgramTable(unsigned first_bits) { allocate(first_bits); }

    [[nodiscard]] std::size_t size() const noexcept { return used_.size(); }
    void prefetch(std::uint64_t hash) const noexcept { __builtin_prefetch(slots() + (hash >> shift_)); }

    // Null if the n-gram is not there.
    [[nodiscard]] const Node* find(const Ngram& key, std::uint64_t hash) const noexcept {
        for (std::size_t slot = hash >> shift_;; slot = (slot + 1) & mask_) {
            const Node& node = slots()[slot];
            if (node.total == 0) {
                return nullptr;
            }
            if (node.key == key) {
                return &node;
            }
        }
    }

    // The n-gram's node, empty if it is new. The caller has reserved.
    Node& find_or_insert(const Ngram& key, std::uint64_t hash) {
        for (std::size_t slot = hash >> shift_;; slot = (slot + 1) & mask_) {
            Node& node = slots()[slot];
            if (node.total == 0) {
                node.key = key;
                used_.push_back(static_cast<std::uint32_t>(slot));
                return node;
            }
            if (node.key == key) {
                return node;
            }
        }
    }

    // Adds another table's node to one of this table's.
    void merge(Node& node, const NodeLists& from, const Node& other) { lists_.merge(node, from, other); }

    [[nodiscard]] const NodeLists& lists() const noexcept { return lists_; }

    // The i-th n-gram of size(), in no order that means anything.
    [[nodiscard]] const Node& used(std::size_t i) const noexcept { return slots()[used_[i]]; }

    // Empties the table in the time its content takes, and keeps its memory.
    void clear() noexcept {
        for (const std::uint32_t slot : used_) {
            slots()[slot] = Node{};
        }
        used_.clear();
        lists_.clear();
    }

    // Room for `more` n-grams; nodes may move to make it.
    template <class HashOf>
    void reserve(std::size_t more, HashOf&& hash_of) {
        while ((used_.size() + more) * 3 > (mask_ + 1) * 2) [[unlikely]] {
            grow(hash_of);
        }
    }

    [[nodiscard]] std::size_t bytes() const noexcept {
        return memory_.size() + used_.capacity() * sizeof(std::uint32_t) + lists_.bytes();
    }

private:
    [[nodiscard]] Node* slots() noexcept { return reinterpret_cast<Node*>(memory_.data()); }
    [[nodiscard]] const Node* slots() const noexcept { return reinterpret_cast<const Node*>(memory_.data()); }

    void allocate(unsigned bits) {
        const std::size_t count = std::size_t{1} << bits;
        memory_ = AlignedBuffer(count * sizeof(Node), [](void* start, std::size_t size_bytes) {
            constexpr std::size_t worth_it = std::size_t{4} << 20;
            if (size_bytes >= worth_it) {
                advise_huge_pages(start, size_bytes);
            }
        });
        std::uninitialized_fill_n(slots(), count, Node{});
        shift_ = 64 - bits;
        mask_ = count - 1;
    }

    // Slots are numbered by the hash's top bits, so the old slots in order fill the new ones in order: both
    // arrays are walked once from front to back.
    template <class HashOf>
    [[gnu::noinline]] void grow(HashOf&& hash_of) {
        const AlignedBuffer before = std::move(memory_);
        const std::size_t count_before = mask_ + 1;
        allocate(64 - shift_ + 1);
        used_.clear();
        const Node* old = reinterpret_cast<const Node*>(before.data());
        for (const Node* node = old; node != old + count_before; ++node) {
            if (node->total != 0) {
                find_or_insert(node->key, hash_of(node->key)) = *node;
            }
        }
    }

    AlignedBuffer memory_;
    unsigned shift_ = 0;
    std::size_t mask_ = 0;
    std::vector<std::uint32_t> used_;  // the slots that hold a node
    NodeLists lists_;
};

}  // namespace ladder::summary
