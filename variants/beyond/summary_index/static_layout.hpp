// How the static cache lies in its file: the arithmetic that builder and reader share.
//
//   header | lines of 64 bytes, each with 8 (narrow) or 4 (wide) entries | successor lists
//
// An entry holds what most look-ups want: the bigram's identity, the verdict (what static alone would draft),
// its most frequent successor, and the count (one successor) or the place of the list (several).
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/types.hpp"

namespace ladder::summary {

inline constexpr std::uint32_t version = 2;
inline constexpr std::size_t line_bytes = 64;
inline constexpr std::uint64_t section_alignment = 4096;
inline constexpr unsigned displacement_bits = 2;  // an entry lies at most three lines behind its own
inline constexpr unsigned kind_bits = 2;
inline constexpr std::size_t list_unit_bytes = 4;  // list offsets count these
inline constexpr std::size_t tail_bytes =
    8;  // behind the last list, so that no read of a pair leaves the file

struct Header {
    std::array<std::uint8_t, 8> magic;
    std::uint32_t version;
    std::uint32_t entry_bytes;  // 8: narrow, 16: wide
    std::uint64_t file_bytes;
    std::uint64_t vocabulary_size;  // of the tokenizer; 0 if unknown
    std::uint64_t token_limit;      // one more than the largest token id in the file
    std::uint64_t n_bigrams;
    std::uint64_t n_successors;
    std::uint64_t n_lines;
    std::uint64_t lines_offset;
    std::uint64_t lists_offset;
    std::uint64_t lists_bytes;
    std::uint64_t content_xxh64;  // of everything behind the header
    std::uint64_t header_xxh64;   // of everything before this field
};
static_assert(sizeof(Header) == 104 && std::is_trivially_copyable_v<Header>);

// 0 marks an empty slot, so every entry has a kind.
enum class Kind : std::uint8_t {
    empty = 0,
    single = 1,        // one successor: it and its count are in the entry
    several_fail = 2,  // a list, and static alone drafts nothing
    several_pass = 3,  // a list, and static alone drafts the most frequent successor
};

// What an entry says, apart from whose it is.
struct Payload {
    Kind kind = Kind::empty;
    Token top = null_token;   // most frequent successor, the smallest token of equals
    std::uint64_t value = 0;  // single: its count; several: the list's offset in list units
};

[[nodiscard]] constexpr std::uint64_t low_bits(unsigned bits) noexcept {
    return bits >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
}

// Mixes a key of `bits` bits one to one: bijective steps only, so that a part of the result, together with
// the line it led to, identifies the key exactly.
[[nodiscard]] constexpr std::uint64_t permute(std::uint64_t key, unsigned bits) noexcept {
    const unsigned half = (bits + 1) / 2;
    key ^= key >> half;
    key = (key * 0x9e3779b97f4a7c15ULL) & low_bits(bits);
    key ^= key >> half;
    key = (key * 0xd1b54a32d192ed03ULL) & low_bits(bits);
    key ^= key >> half;
    return key;
}

// The derived widths, fixed by the largest token and the number of lines.
struct Layout {
    unsigned token_bits = 1;
    std::uint64_t n_lines = 1;
    unsigned remainder_bits = 0;
    unsigned pair_bytes = 3;  // a list's light pair: permuted token above its count
    unsigned count_bits = 1;

    Layout() = default;
    Layout(std::uint64_t token_limit, std::uint64_t lines) : n_lines(lines) {
        token_bits = static_cast<unsigned>(std::max(1, static_cast<int>(std::bit_width(token_limit - 1))));
        // The keys that lead to one line are an interval of the permuted keys; this many bits tell them
        // apart.
        const auto per_line =
            static_cast<std::uint64_t>(((Wide{1} << (2 * token_bits)) + n_lines - 1) / n_lines);
        remainder_bits = static_cast<unsigned>(std::bit_width(per_line - 1));
        constexpr unsigned min_count_bits = 5, max_count_bits = 8;
        while (8 * pair_bytes < token_bits + min_count_bits) {
            ++pair_bytes;
        }
        count_bits = std::min(max_count_bits, 8 * pair_bytes - token_bits);
    }

    [[nodiscard]] std::uint64_t permuted(Bigram bigram) const noexcept {
        return permute(static_cast<std::uint64_t>(bigram.first) << token_bits |
                           static_cast<std::uint64_t>(bigram.second),
                       2 * token_bits);
    }
    [[nodiscard]] std::uint64_t line_of(std::uint64_t permuted_key) const noexcept {
        return static_cast<std::uint64_t>(static_cast<Wide>(permuted_key) * n_lines >> (2 * token_bits));
    }
    [[nodiscard]] std::uint64_t permuted_token(Token token) const noexcept {
        return static_cast<std::uint64_t>(token) * 0x9e3779b1ULL & low_bits(token_bits);
    }
    // Largest count that fits a light pair.
    [[nodiscard]] std::uint64_t light_limit() const noexcept { return low_bits(count_bits); }

private:
    __extension__ using Wide = unsigned __int128;
};

// Eight bytes: kind | displacement | remainder | top token | value, from the lowest bit.
struct NarrowEntry {
    using Word = std::uint64_t;
    static constexpr std::size_t per_line = line_bytes / sizeof(Word);

    [[nodiscard]] static unsigned value_bits(const Layout& layout) noexcept {
        const unsigned used = kind_bits + displacement_bits + layout.remainder_bits + layout.token_bits;
        return used >= 64 ? 0 : 64 - used;
    }
    [[nodiscard]] static Word identity(const Layout& layout, std::uint64_t permuted_key,
                                       unsigned displacement) {
        return ((permuted_key & low_bits(layout.remainder_bits)) << displacement_bits | displacement)
               << kind_bits;
    }
    [[nodiscard]] static Word identity_mask(const Layout& layout) noexcept {
        return low_bits(layout.remainder_bits + displacement_bits) << kind_bits;
    }
    [[nodiscard]] static Word encode(const Layout& layout, Word identity, const Payload& payload) {
        const unsigned shift = kind_bits + displacement_bits + layout.remainder_bits;
        return identity | static_cast<Word>(payload.kind) | static_cast<Word>(payload.top) << shift |
               payload.value << (shift + layout.token_bits);
    }
    [[nodiscard]] static Payload decode(const Layout& layout, Word word) noexcept {
        const unsigned shift = kind_bits + displacement_bits + layout.remainder_bits;
        return {static_cast<Kind>(word & low_bits(kind_bits)),
                static_cast<Token>(word >> shift & low_bits(layout.token_bits)),
                word >> (shift + layout.token_bits)};
    }
};

// Sixteen bytes, for vocabularies that a narrow entry cannot hold: kind | displacement | key in the first
// word; top token | value in the second.
struct WideEntry {
    struct Word {
        std::uint64_t front = 0;
        std::uint64_t back = 0;
    };
    static constexpr std::size_t per_line = line_bytes / sizeof(Word);
    static constexpr unsigned token_width = 31;

    static constexpr unsigned identity_bits = 64 - kind_bits - displacement_bits;

    [[nodiscard]] static unsigned value_bits(const Layout&) noexcept { return 64 - token_width; }
    [[nodiscard]] static bool identity_fits(const Layout& layout) noexcept {
        return layout.remainder_bits <= identity_bits;
    }
    [[nodiscard]] static Word identity(const Layout& layout, std::uint64_t permuted_key,
                                       unsigned displacement) {
        return {((permuted_key & low_bits(layout.remainder_bits)) << displacement_bits | displacement)
                    << kind_bits,
                0};
    }
    [[nodiscard]] static Word encode(const Layout&, Word identity, const Payload& payload) {
        return {identity.front | static_cast<std::uint64_t>(payload.kind),
                static_cast<std::uint64_t>(payload.top) | payload.value << token_width};
    }
    [[nodiscard]] static Payload decode(const Layout&, const Word& word) noexcept {
        return {static_cast<Kind>(word.front & low_bits(kind_bits)),
                static_cast<Token>(word.back & low_bits(token_width)), word.back >> token_width};
    }
};

// First word of a list. A short one says all; a long one is followed by two more words.
//   short: 0 | n_light << 1 (15 bits) | highest count << 16
//   long:  1 | n_light << 1; then n_heavy, highest count
struct ListHead {
    std::uint32_t n_light = 0;
    std::uint32_t n_heavy = 0;
    std::uint32_t top_count = 0;

    static constexpr std::uint32_t short_light_limit = (1U << 15) - 1;

    // The counts of light pairs have eight bits at most.
    [[nodiscard]] bool is_short() const noexcept { return n_heavy == 0 && n_light <= short_light_limit; }
};

// A successor too frequent for a light pair; heavy ones lie before the light ones, both sorted by permuted
// token.
struct HeavyPair {
    std::uint32_t permuted_token;
    std::uint32_t count;
};

}  // namespace ladder::summary
