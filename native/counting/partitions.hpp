// How the tokens are cut into slices for the threads, and their keys into partitions the size of a cache,
// which are sorted.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/types.hpp"

namespace ladder::counting {

inline constexpr std::size_t slice_tokens = std::size_t{1} << 21;  // one task of a scan
inline constexpr std::size_t partition_keys = std::size_t{1}
                                              << 20;  // wanted size of a partition: about a cache
inline constexpr unsigned bucket_bits = 14;           // how finely the first token is told apart

struct Slice {
    std::size_t begin;
    std::size_t end;
};

[[nodiscard]] inline std::vector<Slice> cut(std::size_t size) {
    std::vector<Slice> slices;
    for (std::size_t begin = 0; begin < size; begin += slice_tokens) {
        slices.push_back({begin, std::min(size, begin + slice_tokens)});
    }
    return slices;
}

// Which keys go where.
struct Plan {
    unsigned token_bits = 1;
    unsigned bucket_shift = 0;
    std::vector<std::uint32_t> partition_of;          // bucket -> partition
    std::vector<std::size_t> starts;                  // partition -> first key; one more at the end
    std::vector<std::vector<std::size_t>> positions;  // slice -> partition -> next key

    [[nodiscard]] std::size_t n_partitions() const noexcept { return starts.size() - 1; }
    [[nodiscard]] std::uint32_t partition(Token first) const noexcept {
        return partition_of[static_cast<std::uint32_t>(first) >> bucket_shift];
    }
};

// Neighbouring buckets share a partition until it is full.
inline void group_buckets(Plan& plan, const std::vector<std::vector<std::uint32_t>>& histograms) {
    std::vector<std::size_t> sizes(1, 0);
    for (std::size_t bucket = 0; bucket < plan.partition_of.size(); ++bucket) {
        std::size_t size = 0;
        for (const auto& histogram : histograms) {
            size += histogram[bucket];
        }
        if (sizes.back() > 0 && sizes.back() + size > partition_keys) {
            sizes.push_back(0);
        }
        sizes.back() += size;
        plan.partition_of[bucket] = static_cast<std::uint32_t>(sizes.size() - 1);
    }
    plan.starts.assign(1, 0);
    for (const std::size_t size : sizes) {
        plan.starts.push_back(plan.starts.back() + size);
    }
}

// Every slice gets its own places in every partition, so that threads never meet and the result does not
// depend on their number.
inline void place_slices(Plan& plan, const std::vector<std::vector<std::uint32_t>>& histograms) {
    std::vector<std::size_t> next(plan.starts.begin(), plan.starts.end() - 1);
    for (const auto& histogram : histograms) {
        plan.positions.push_back(next);
        for (std::size_t bucket = 0; bucket < histogram.size(); ++bucket) {
            next[plan.partition_of[bucket]] += histogram[bucket];
        }
    }
}

inline constexpr unsigned digit_bits = 11;

// Least significant digit first; a digit that is the same everywhere is skipped.
template <class Key>
void radix_sort(std::span<Key> keys, std::vector<Key>& scratch, unsigned key_bits) {
    constexpr std::size_t small = 4096;
    if (keys.size() < small) {
        std::sort(keys.begin(), keys.end());
        return;
    }
    constexpr std::size_t n_values = std::size_t{1} << digit_bits;
    const unsigned n_digits = (key_bits + digit_bits - 1) / digit_bits;
    const auto digit = [](Key key, unsigned number) {
        return static_cast<std::size_t>(key >> (number * digit_bits)) & (n_values - 1);
    };
    std::vector<std::size_t> counts(n_digits * n_values, 0);
    for (const Key key : keys) {
        for (unsigned number = 0; number < n_digits; ++number) {
            ++counts[number * n_values + digit(key, number)];
        }
    }
    if (scratch.size() < keys.size()) {
        scratch.resize(keys.size());
    }
    std::span<Key> from = keys;
    std::span<Key> to = std::span(scratch).first(keys.size());
    for (unsigned number = 0; number < n_digits; ++number) {
        const std::span<std::size_t> places = std::span(counts).subspan(number * n_values, n_values);
        if (places[digit(from[0], number)] == keys.size()) {
            continue;
        }
        std::size_t next = 0;
        for (std::size_t& place : places) {
            next += std::exchange(place, next);
        }
        for (const Key key : from) {
            to[places[digit(key, number)]++] = key;
        }
        std::swap(from, to);
    }
    if (from.data() != keys.data()) {
        std::copy(from.begin(), from.end(), keys.begin());
    }
}

}  // namespace ladder::counting
