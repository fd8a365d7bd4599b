// An n-gram with a summary of its successors beside the key, and what counting does to it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/types.hpp"
#include "containers/successors.hpp"

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

    [[nodiscard]] const Successor* find(Token token) const noexcept {
        const Successor* entry = last_not_above(entries.data(), entries.size(), token);
        return entry->token == token ? entry : nullptr;
    }
};

// The lists of a table's nodes, and what counting does to a node and its list.
class NodeLists {
public:
    [[nodiscard]] const CountedList& of(const Node& node) const noexcept { return lists_[node.list]; }

    // Counts `token` after a node that has counted before.
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

    // Adds a node of other lists.
    void merge(Node& node, const NodeLists& from, const Node& other) {
        if (node.total > std::numeric_limits<std::uint32_t>::max() - other.total) [[unlikely]] {
            throw_count_overflow(node.key, other.best);
        }
        if (other.single()) {
            if (node.total == 0) {
                node.best = other.best;
                node.best_count = node.total = other.total;
            } else {
                add(node, other.best, other.best_count);
            }
            return;
        }
        const CountedList& added = from.lists_[other.list];
        if (node.total == 0) {
            const std::uint32_t list = new_list();
            lists_[list].second_count = added.second_count;
            lists_[list].entries.assign(added.entries.begin(), added.entries.end());
            node = other;
            node.list = list;
            return;
        }
        for (const auto& [successor, count] : added.entries) {
            add(node, successor, static_cast<std::uint32_t>(count));
        }
    }

    void clear() noexcept { in_use_ = 0; }
    [[nodiscard]] std::size_t bytes() const noexcept {
        std::size_t bytes = lists_.capacity() * sizeof(CountedList);
        for (const CountedList& list : lists_) {
            bytes += list.entries.capacity() * sizeof(Successor);
        }
        return bytes;
    }

private:
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
        if (in_use_ == lists_.size()) {
            lists_.emplace_back();
        }
        return static_cast<std::uint32_t>(in_use_++);
    }

    std::vector<CountedList> lists_;
    std::size_t in_use_ = 0;
};

}  // namespace ladder::summary
