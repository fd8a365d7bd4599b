// Hashes of n-grams: llama.cpp's, and one whose every output bit depends on every input bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/types.hpp"

namespace ladder {

// Both halves of the 128-bit product, folded: the cheapest mixing step that spreads low bits upwards and high
// bits downwards at once (the step wyhash is built from).
[[nodiscard]] inline std::uint64_t multiply_fold(std::uint64_t a, std::uint64_t b) noexcept {
    __extension__ using Wide = unsigned __int128;
    const Wide product = static_cast<Wide>(a) * b;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

// For tables that index by the top bits and keep the low bits as a fingerprint.
struct AvalanchingNgramHash {
    using is_avalanching = void;  // read by SegmentedMap and by ankerl::unordered_dense: do not mix again

    [[nodiscard]] std::uint64_t operator()(const Ngram& ngram) const noexcept {
        std::uint64_t front;
        std::uint64_t back;
        std::memcpy(&front, ngram.tokens.data(), sizeof front);
        std::memcpy(&back, ngram.tokens.data() + 2, sizeof back);
        // A factor of zero would forget the other half. Bit 31 of both salts is set and their low words are
        // not all ones, so no pair of token >= 0 or null_token makes one.
        return multiply_fold(multiply_fold(front ^ front_salt, back ^ back_salt), spread);
    }

private:
    static constexpr std::uint64_t front_salt = 0x8f3f73b5cf1c9adeULL;
    static constexpr std::uint64_t back_salt = 0xd1b54a32d192ed03ULL;
    static constexpr std::uint64_t spread = 0x9e3779b97f4a7c15ULL;  // 2^64 / golden ratio, odd
};

// llama.cpp's hash as drafting.md states it: part of what rungs 1 and 2 copy, weaknesses included.
struct XorNgramHash {
    [[nodiscard]] std::size_t operator()(const Ngram& ngram) const noexcept {
        std::uint64_t hash = 0;
        for (const Token token : ngram.tokens) {
            hash ^= static_cast<std::uint64_t>(std::int64_t{token}) * 11400714819323198485ULL;
        }
        return static_cast<std::size_t>(hash);
    }
};

}  // namespace ladder
