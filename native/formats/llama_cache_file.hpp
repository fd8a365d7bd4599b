// llama.cpp's static cache file: no header; until the end of the file 4 x int32 n-gram (padded with -1),
// int32 k > 0, then k pairs (int32 token, int32 count > 0). A static file holds bigrams only; an empty file
// is an empty cache.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "base/types.hpp"
#include "formats/sink.hpp"
#include "formats/source.hpp"
#include "formats/static_format.hpp"

namespace ladder {

inline constexpr std::uint64_t llama_ngram_bytes = ngram_max * sizeof(Token);
inline constexpr std::uint64_t llama_header_bytes = llama_ngram_bytes + sizeof(std::int32_t);

[[nodiscard]] inline std::uint64_t record_bytes(std::size_t n_successors) noexcept {
    return llama_header_bytes + n_successors * sizeof(Successor);
}

namespace llama_cache {

inline constexpr const char* rebuild = "build the cache again";

[[noreturn]] inline void throw_bad_ngram(const Source& source, std::uint64_t offset,
                                         const std::array<Token, ngram_max>& ngram) {
    for (std::size_t slot = 0; slot < ngram.size(); ++slot) {
        const bool may_be_padding = slot > 0;
        if (ngram[slot] < (may_be_padding ? null_token : 0)) {
            throw InputError(source.name(), offset + slot * sizeof(Token),
                             "token " + std::to_string(ngram[slot]) + " is negative", rebuild);
        }
    }
    const auto length = std::find(ngram.begin(), ngram.end(), null_token) - ngram.begin();
    const bool gap =
        std::any_of(ngram.begin() + length, ngram.end(), [](Token token) { return token != null_token; });
    throw InputError(source.name(), offset,
                     gap ? std::string("n-gram with a gap in it")
                         : "n-gram of length " + std::to_string(length) + " in a static cache",
                     "a static cache holds n-grams of length 2 only; give one made by llama-lookup-create or "
                     "`ladder cache`");
}

[[noreturn]] inline void throw_bad_successor(const Source& source, std::uint64_t offset, Bigram bigram,
                                             std::span<const Successor> successors) {
    for (const Successor& successor : successors) {
        if (successor.token < 0) {
            throw InputError(source.name(), offset,
                             "token " + std::to_string(successor.token) + " after " + bigram_words(bigram) +
                                 " is negative",
                             rebuild);
        }
        if (successor.count <= 0) {
            throw InputError(source.name(), offset + sizeof(Token),
                             "count " + std::to_string(successor.count) + " of token " +
                                 std::to_string(successor.token) + " after " + bigram_words(bigram) +
                                 " is not positive",
                             rebuild);
        }
        offset += sizeof(Successor);
    }
    throw InternalError("a successor list was refused without a reason");
}

// Reads one n-gram and its number of successors.
[[nodiscard]] inline std::pair<Bigram, std::size_t> read_header(Source& source) {
    const std::uint64_t start = source.offset();
    if (source.remaining() < llama_header_bytes) {
        throw InputError(source.name(), source.size_bytes(),
                         "the file ends inside the n-gram that starts at byte " + std::to_string(start),
                         "the file was cut; copy or build it again");
    }
    std::array<std::int32_t, ngram_max + 1> header;
    std::memcpy(header.data(), source.take(llama_header_bytes), llama_header_bytes);
    const std::array<Token, ngram_max> ngram{header[0], header[1], header[2], header[3]};
    if (ngram[0] < 0 || ngram[1] < 0 || ngram[2] != null_token || ngram[3] != null_token) [[unlikely]] {
        throw_bad_ngram(source, start, ngram);
    }
    const Bigram bigram{ngram[0], ngram[1]};
    const std::int32_t n_successors = header[ngram_max];
    if (n_successors <= 0) [[unlikely]] {
        throw InputError(
            source.name(), start + llama_ngram_bytes,
            "n-gram " + bigram_words(bigram) + " has " + std::to_string(n_successors) + " successors",
            rebuild);
    }
    const auto count = static_cast<std::size_t>(n_successors);
    if (source.remaining() / sizeof(Successor) < count) [[unlikely]] {
        throw InputError(source.name(), start + llama_ngram_bytes,
                         "n-gram " + bigram_words(bigram) + " has " + std::to_string(count) +
                             " successors, but the file ends at byte " + std::to_string(source.size_bytes()),
                         "the file was cut or damaged; copy or build it again");
    }
    return {bigram, count};
}

// A list in no order: sorted in a scratch copy to find a repetition.
inline void check_unordered(const Source& source, std::uint64_t offset, Bigram bigram,
                            std::span<const Successor> successors, std::vector<Token>& scratch) {
    scratch.clear();
    for (const Successor& successor : successors) {
        scratch.push_back(successor.token);
    }
    std::sort(scratch.begin(), scratch.end());
    const auto repeated = std::adjacent_find(scratch.begin(), scratch.end());
    if (repeated == scratch.end()) {
        return;
    }
    std::size_t seen = 0;
    for (std::size_t i = 0; i < successors.size(); ++i) {
        if (successors[i].token == *repeated && ++seen == 2) {
            offset += i * sizeof(Successor);
        }
    }
    throw InputError(source.name(), offset,
                     "token " + std::to_string(*repeated) + " occurs twice after " + bigram_words(bigram),
                     rebuild);
}

// One pass without a branch per pair; a sorted list (either way) needs no second one.
inline void check_successors(const Source& source, std::uint64_t offset, Bigram bigram,
                             std::span<const Successor> successors, std::vector<Token>& scratch) {
    Token previous = successors[0].token;
    bool valid = previous >= 0 && successors[0].count > 0;
    bool ascending = true;
    bool descending = true;
    for (const Successor& successor : successors.subspan(1)) {
        valid &= (successor.token >= 0) & (successor.count > 0);
        ascending &= previous < successor.token;
        descending &= previous > successor.token;
        previous = successor.token;
    }
    if (!valid) [[unlikely]] {
        throw_bad_successor(source, offset, bigram, successors);
    }
    if (!ascending && !descending) {
        check_unordered(source, offset, bigram, successors, scratch);
    }
}

// The next n-gram and its successors, checked; the span is valid until the next take. Always inlined: as a
// function of its own it would leave the compiler less room to inline a drafter's look-ups in the same file.
[[nodiscard]] [[gnu::always_inline]] inline std::pair<Bigram, std::span<const Successor>> read_record(
    Source& source, std::vector<Token>& scratch) {
    const std::uint64_t start = source.offset();
    const auto [bigram, n_successors] = read_header(source);
    const std::byte* bytes = source.take(n_successors * sizeof(Successor));
    const std::span<const Successor> successors(reinterpret_cast<const Successor*>(bytes), n_successors);
    check_successors(source, start + llama_header_bytes, bigram, successors, scratch);
    return {bigram, successors};
}

}  // namespace llama_cache

// Calls on_ngram(Bigram, std::span<const Successor>, std::uint64_t offset) for every n-gram in file order;
// the span is valid during the call, `offset` is the byte where the n-gram starts. InputError on anything
// drafting.md does not allow, except n-grams that occur twice: those the consumer detects
// (throw_repeated_ngram).
template <class OnNgram>
void read_llama_cache(Source& source, OnNgram&& on_ngram) {
    std::vector<Token> scratch;
    while (source.remaining() > 0) {
        const std::uint64_t start = source.offset();
        const auto [bigram, successors] = llama_cache::read_record(source, scratch);
        on_ngram(bigram, successors, start);
    }
}

// Writes llama.cpp's format, n-grams in the order they are given. The caller keeps them unique.
class LlamaCacheWriter {
public:
    explicit LlamaCacheWriter(Sink& sink) noexcept : sink_(sink) {}

    void write(Bigram bigram, std::span<const Successor> successors) {
        LADDER_CHECK(!successors.empty() &&
                     successors.size() <= static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()));
        const std::array<std::int32_t, ngram_max + 1> header{bigram.first, bigram.second, null_token,
                                                             null_token,
                                                             static_cast<std::int32_t>(successors.size())};
        sink_.write(std::as_bytes(std::span(header)));
        sink_.write(std::as_bytes(successors));
    }

private:
    Sink& sink_;
};

}  // namespace ladder
