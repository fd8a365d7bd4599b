// Successor containers of the rungs, behind one set of free functions:
//   count_of(successors, token)        0 if the token never followed
//   increment(successors, token, by)   adds to a count, creating it
//   merge_into(map, ngram, successors) adds one n-gram's counts to another cache
//   bytes_of(...)                      what the container asked the allocator for
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/check.hpp"
#include "base/types.hpp"
#include "containers/dense_segmented_map.hpp"
#include "containers/sorted_search.hpp"

namespace ladder {

using MapSuccessors = std::unordered_map<Token, std::int32_t>;

inline std::int32_t count_of(const MapSuccessors& successors, Token token) {
    const auto found = successors.find(token);
    return found == successors.end() ? 0 : found->second;
}

// Adds `by` to `count`; false if the sum does not fit.
inline bool add_count(std::int32_t& count, std::int32_t by) {
    if (count > std::numeric_limits<std::int32_t>::max() - by) [[unlikely]] {
        return false;
    }
    count += by;
    return true;
}

inline bool increment(MapSuccessors& successors, Token token, std::int32_t by) {
    const auto [entry, inserted] = successors.try_emplace(token, by);
    return inserted || add_count(entry->second, by);
}

// Successors sorted by token, in one vector.
template <class Search>
class BasicSortedSuccessors {
public:
    BasicSortedSuccessors() = default;
    // `sorted` must be sorted by token, without repeats.
    explicit BasicSortedSuccessors(std::span<const Successor> sorted)
        : entries_(sorted.begin(), sorted.end()) {}

    auto begin() const { return entries_.begin(); }
    auto end() const { return entries_.end(); }

    std::int32_t count_of(Token token) const {
        if (entries_.empty()) {
            return 0;
        }
        const Successor* entry = Search::closest(entries_.data(), entries_.size(), token);
        return entry->token == token ? entry->count : 0;
    }

    bool increment(Token token, std::int32_t by) {
        auto place = entries_.begin();
        if (!entries_.empty()) {
            place += Search::closest(entries_.data(), entries_.size(), token) - entries_.data();
            if (place->token == token) {
                return add_count(place->count, by);
            }
            place += place->token < token ? 1 : 0;
        }
        entries_.insert(place, Successor{token, by});
        return true;
    }

    std::size_t bytes() const { return entries_.capacity() * sizeof(Successor); }

private:
    std::vector<Successor> entries_;
};

using SortedSuccessors = BasicSortedSuccessors<FixedRoundSearch>;

// Successors in the order of their arrival, searched from front to back.
class UnsortedSuccessors {
public:
    UnsortedSuccessors() = default;
    explicit UnsortedSuccessors(std::span<const Successor> entries)
        : entries_(entries.begin(), entries.end()) {}

    auto begin() const { return entries_.begin(); }
    auto end() const { return entries_.end(); }

    std::int32_t count_of(Token token) const {
        for (const auto& entry : entries_) {
            if (entry.token == token) {
                return entry.count;
            }
        }
        return 0;
    }

    bool increment(Token token, std::int32_t by) {
        for (auto& entry : entries_) {
            if (entry.token == token) {
                return add_count(entry.count, by);
            }
        }
        entries_.push_back({token, by});
        return true;
    }

    std::size_t bytes() const { return entries_.capacity() * sizeof(Successor); }

private:
    std::vector<Successor> entries_;
};

template <class Successors>
concept VectorSuccessors = requires(const Successors& read_only, Successors& successors, Token token) {
    { read_only.count_of(token) } -> std::same_as<std::int32_t>;
    { successors.increment(token, 1) } -> std::same_as<bool>;
    { read_only.bytes() } -> std::same_as<std::size_t>;
};

template <VectorSuccessors Successors>
std::int32_t count_of(const Successors& successors, Token token) {
    return successors.count_of(token);
}
template <VectorSuccessors Successors>
bool increment(Successors& successors, Token token, std::int32_t by) {
    return successors.increment(token, by);
}

inline std::int32_t count_of(std::span<const Successor> sorted, Token token) {
    if (sorted.empty()) {
        return 0;
    }
    const Successor* entry = last_not_above(sorted.data(), sorted.size(), token);
    return entry->token == token ? entry->count : 0;
}

// A static look-up's result as a plain pointer, whatever shape it came in.
template <class T>
const T* pointer_to(const T* found) {
    return found;
}
inline const std::span<const Successor>* pointer_to(const std::optional<std::span<const Successor>>& found) {
    return found ? &*found : nullptr;
}

inline std::string text_of(const Ngram& ngram) {
    std::string text = "(";
    for (const Token token : ngram.tokens) {
        if (token != null_token) {
            text += (text.size() > 1 ? ", " : "") + std::to_string(token);
        }
    }
    return text + ")";
}

[[noreturn]] inline void throw_count_overflow(const Ngram& ngram, Token token) {
    throw InputError("n-gram " + text_of(ngram) + ": the merged count of successor " + std::to_string(token) +
                     " is beyond 2147483647; replay a shorter text");
}

// An n-gram the target does not have gets a copy of the whole container, not an empty one that is filled:
// for std::unordered_map that keeps the iteration order, on which ties depend.
template <class NgramMap, class Successors>
void merge_into(NgramMap& target, const Ngram& ngram, const Successors& successors) {
    const auto [entry, inserted] = target.try_emplace(ngram, successors);
    if (inserted) {
        return;
    }
    for (const auto& [token, count] : successors) {
        if (!increment(entry->second, token, count)) [[unlikely]] {
            throw_count_overflow(ngram, token);
        }
    }
}

// Node-based containers: a node holds a next pointer and the pair, and there is an array of buckets.
template <class Key, class Value, class... Rest>
std::size_t own_bytes_of(const std::unordered_map<Key, Value, Rest...>& map) {
    struct Node {
        void* next;
        std::pair<const Key, Value> value;
    };
    return map.size() * sizeof(Node) + map.bucket_count() * sizeof(void*);
}

inline std::size_t bytes_of(const MapSuccessors& successors) {
    return own_bytes_of(successors);
}
template <VectorSuccessors Successors>
std::size_t bytes_of(const Successors& successors) {
    return successors.bytes();
}

template <class NgramMap>
std::size_t own_bytes_of(const NgramMap& ngrams) {
    return map_memory_bytes(ngrams);
}

template <class NgramMap>
std::size_t bytes_of(const NgramMap& ngrams) {
    std::size_t bytes = own_bytes_of(ngrams);
    for (const auto& [ngram, successors] : ngrams) {
        bytes += bytes_of(successors);
    }
    return bytes;
}

}  // namespace ladder
