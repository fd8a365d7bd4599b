// The context and dynamic caches: n-grams with a summary of their successors beside the key.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "common/check.hpp"
#include "common/file_io.hpp"
#include "common/platform.hpp"
#include "common/successors.hpp"
#include "common/types.hpp"

namespace ladder::summary {

inline constexpr std::uint32_t no_list = 0xffffffffU;

// Half a cache line. While an n-gram has one successor that is all there is; the second one opens a list.
struct alignas(32) Node {
    Ngram key;
    Token best = null_token;  // highest count, the smallest token of equals
    std::uint32_t best_count = 0;
    std::uint32_t total = 0;       // 0: an empty slot
    std::uint32_t list = no_list;  // place in the table's lists

    [[nodiscard]] bool single() const noexcept { return list == no_list; }
};
static_assert(sizeof(Node) == 32);

// Successors of a node that has several, sorted by token.
struct CountedList {
    std::uint32_t second_count = 0;  // highest count but the best one's
    std::vector<Successor> entries;

    [[nodiscard]] Successor* find(Token token) noexcept {
        return const_cast<Successor*>(std::as_const(*this).find(token));
    }
    [[nodiscard]] const Successor* find(Token token) const noexcept {
        const Successor* entry = last_not_above(entries.data(), entries.size(), token);
        return entry->token == token ? entry : nullptr;
    }
};

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

    // Counts one occurrence of `token` after an n-gram that find() gave, or that is known to be new. The
    // caller has reserved.
    void count(const Node& node, Token token) { add(const_cast<Node&>(node), token, 1); }
    void insert(const Ngram& key, std::uint64_t hash, Token token) {
        Node& node = find_or_insert(key, hash);
        node.best = token;
        node.best_count = node.total = 1;
    }

    // Adds another table's node; returns the sum.
    const Node& merge(const NgramTable& from, const Node& other, std::uint64_t hash) {
        Node& node = find_or_insert(other.key, hash);
        if (other.single()) {
            if (node.total == 0) {
                node.best = other.best;
                node.best_count = node.total = other.total;
            } else {
                add(node, other.best, other.best_count);
            }
            return node;
        }
        const CountedList& added = from.lists_[other.list];
        if (node.total == 0) {
            const std::uint32_t list = new_list();
            lists_[list].second_count = added.second_count;
            lists_[list].entries.assign(added.entries.begin(), added.entries.end());
            node = other;
            node.list = list;
            return node;
        }
        for (const auto& [successor, count] : added.entries) {
            add(node, successor, static_cast<std::uint32_t>(count));
        }
        return node;
    }

    [[nodiscard]] const CountedList& list(const Node& node) const noexcept { return lists_[node.list]; }

    // The i-th n-gram of size(), in no order that means anything.
    [[nodiscard]] const Node& used(std::size_t i) const noexcept { return slots()[used_[i]]; }

    // Empties the table in the time its content takes, and keeps its memory: it is filled again every chunk.
    void clear() noexcept {
        for (const std::uint32_t slot : used_) {
            slots()[slot] = Node{};
        }
        used_.clear();
        lists_in_use_ = 0;
    }

    // Room for `more` n-grams without moving a node. True if nodes had to move to make it.
    template <class HashOf>
    bool reserve(std::size_t more, HashOf&& hash_of) {
        const std::size_t mask_before = mask_;
        while ((used_.size() + more) * 3 > (mask_ + 1) * 2) [[unlikely]] {
            grow(hash_of);
        }
        return mask_ != mask_before;
    }

    [[nodiscard]] std::size_t bytes() const noexcept {
        std::size_t bytes = memory_.size() + used_.capacity() * sizeof(std::uint32_t) +
                            lists_.capacity() * sizeof(CountedList);
        for (const CountedList& list : lists_) {
            bytes += list.entries.capacity() * sizeof(Successor);
        }
        return bytes;
    }

private:
    [[nodiscard]] Node* slots() noexcept { return reinterpret_cast<Node*>(memory_.data()); }
    [[nodiscard]] const Node* slots() const noexcept { return reinterpret_cast<const Node*>(memory_.data()); }

    // The caller has reserved.
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

    void add(Node& node, Token token, std::uint32_t by) {
        constexpr std::uint32_t limit = std::numeric_limits<std::int32_t>::max();
        std::uint32_t count = by;
        if (node.single()) {
            if (token == node.best) {
                if (node.best_count > limit - by) [[unlikely]] {
                    throw_count_overflow(node.key, token);
                }
                node.best_count += by;
                node.total += by;
                return;
            }
            open_list(node, token, by);
        } else {
            count = add_to_list(lists_[node.list], node.key, token, by);
        }
        node.total += by;
        CountedList& list = lists_[node.list];
        if (token == node.best) {
            node.best_count = count;
        } else if (count > node.best_count || (count == node.best_count && token < node.best)) {
            list.second_count = node.best_count;
            node.best = token;
            node.best_count = count;
        } else {
            list.second_count = std::max(list.second_count, count);
        }
    }

    void open_list(Node& node, Token token, std::uint32_t by) {
        const std::uint32_t list = new_list();
        std::vector<Successor>& entries = lists_[list].entries;
        entries.clear();
        const Successor before{node.best, static_cast<std::int32_t>(node.best_count)};
        const Successor added{token, static_cast<std::int32_t>(by)};
        entries.push_back(before.token < added.token ? before : added);
        entries.push_back(before.token < added.token ? added : before);
        lists_[list].second_count = 0;
        node.list = list;
    }

    static std::uint32_t add_to_list(CountedList& list, const Ngram& key, Token token, std::uint32_t by) {
        std::vector<Successor>& entries = list.entries;
        auto place =
            entries.begin() + (last_not_above(entries.data(), entries.size(), token) - entries.data());
        if (place->token == token) {
            if (!add_count(place->count, static_cast<std::int32_t>(by))) [[unlikely]] {
                throw_count_overflow(key, token);
            }
            return static_cast<std::uint32_t>(place->count);
        }
        place += place->token < token ? 1 : 0;
        entries.insert(place, {token, static_cast<std::int32_t>(by)});
        return by;
    }

    std::uint32_t new_list() {
        if (lists_in_use_ == lists_.size()) {
            lists_.emplace_back();
        }
        return static_cast<std::uint32_t>(lists_in_use_++);
    }

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
    std::vector<CountedList> lists_;
    std::size_t lists_in_use_ = 0;
};

}  // namespace ladder::summary
