// Tokens, n-grams and successors: the words every other header speaks in.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace ladder {

using Token = std::int32_t;

inline constexpr Token null_token = -1;  // pads short n-grams; never a real token
inline constexpr int ngram_max = 4;      // longest n-gram in the context and dynamic caches
inline constexpr int static_ngram = 2;   // the static cache holds bigrams only

// A token that followed an n-gram, and how often.
struct Successor {
    Token token;
    std::int32_t count;
    friend bool operator==(const Successor&, const Successor&) = default;
};
static_assert(sizeof(Successor) == 8);

inline constexpr auto by_token = [](const Successor& a, const Successor& b) noexcept {
    return a.token < b.token;
};

// Two consecutive tokens: the key of the static cache.
struct Bigram {
    Token first;
    Token second;
    friend auto operator<=>(const Bigram&, const Bigram&) = default;
};

// One to four consecutive tokens, padded on the right with null_token.
struct Ngram {
    std::array<Token, ngram_max> tokens{null_token, null_token, null_token, null_token};

    Ngram() = default;
    explicit Ngram(std::span<const Token> source) {
        for (std::size_t i = 0; i < source.size() && i < tokens.size(); ++i) {
            tokens[i] = source[i];
        }
    }
    // Two words at a time: the defaulted comparison of an array is a call of memcmp, in every look-up.
    friend bool operator==(const Ngram& a, const Ngram& b) noexcept {
        std::uint64_t left[2];
        std::uint64_t right[2];
        std::memcpy(left, a.tokens.data(), sizeof left);
        std::memcpy(right, b.tokens.data(), sizeof right);
        return ((left[0] ^ right[0]) | (left[1] ^ right[1])) == 0;
    }
};
static_assert(sizeof(Ngram) == 16);

}  // namespace ladder
