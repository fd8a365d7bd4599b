// Sorts packed keys by their digits.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace ladder::counting {

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
