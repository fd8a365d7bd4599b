// Tokens out of a token file's bytes: little-endian int32, checked, because drafters index by them.
#pragma once

#include <bit>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "base/check.hpp"
#include "base/types.hpp"

namespace ladder {

// Throws InputError naming `where` and the byte offset of a negative or an incomplete token.
[[nodiscard]] inline std::vector<Token> tokens_from(std::span<const std::byte> bytes,
                                                    const std::string& where) {
    static_assert(std::endian::native == std::endian::little, "token files are read as they lie in memory");
    const std::size_t whole = bytes.size() / sizeof(Token);
    if (bytes.size() % sizeof(Token) != 0) {
        throw InputError(where, whole * sizeof(Token), "ends inside a token", "give whole int32 tokens");
    }
    std::vector<Token> tokens(whole);
    if (!tokens.empty()) {
        std::memcpy(tokens.data(), bytes.data(), bytes.size());
    }
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        if (tokens[i] < 0) {
            throw InputError(where, i * sizeof(Token), "token " + std::to_string(tokens[i]) + " is negative",
                             "give token ids of 0 and more");
        }
    }
    return tokens;
}

}  // namespace ladder
