// The frozen static file: a 128-byte header, the successors of all bigrams end to end (sorted by token inside
// a bigram), and a const map from bigram to (first successor << 24 | number of successors). Read whole into
// one buffer and used in place. Both sections begin at multiples of 64 bytes; the map section is exactly a
// VMAP0001 file (or PMAP0001 in the paired layout).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "base/check.hpp"
#include "base/types.hpp"
#include "base/xxh64.hpp"
#include "containers/const_map.hpp"
#include "formats/file_header.hpp"
#include "formats/file_io.hpp"
#include "formats/source.hpp"
#include "formats/static_format.hpp"

namespace ladder {

namespace frozen {

inline constexpr std::uint32_t version = 1;
inline constexpr std::uint64_t section_alignment = 64;
inline constexpr unsigned count_bits = 24;
inline constexpr std::uint64_t count_limit = std::uint64_t{1} << count_bits;  // a bigram has fewer successors
inline constexpr std::uint64_t offset_limit = std::uint64_t{1} << 40;  // all together have at most as many

struct Header {
    std::array<std::uint8_t, 8> magic;
    std::uint32_t version;
    MapLayout layout;
    std::uint64_t file_bytes;
    std::uint64_t vocabulary_size;  // of the tokenizer; 0 if unknown
    std::uint64_t token_limit;      // one more than the largest token id in the file
    std::uint64_t n_bigrams;
    std::uint64_t n_successors;
    std::uint64_t successors_offset;
    std::uint64_t map_offset;
    std::uint64_t map_bytes;
    std::uint64_t successors_xxh64;
    std::array<std::uint64_t, 4> reserved;
    std::uint64_t header_xxh64;  // of everything before
};
static_assert(sizeof(Header) == 128 && std::is_trivially_copyable_v<Header>);

inline constexpr FormatWords words{"frozen", "freeze the cache again"};

[[noreturn]] inline void refuse(const std::string& name, std::uint64_t offset, const std::string& problem) {
    refuse_damaged(words, name, offset, problem);
}

inline void check_sections(const Header& header, const std::string& name) {
    if (header.layout != MapLayout::split && header.layout != MapLayout::paired) {
        refuse(name, offsetof(Header, layout), "the map's layout is unknown");
    }
    if (header.successors_offset % section_alignment != 0 || header.successors_offset < sizeof(Header) ||
        header.successors_offset > header.file_bytes ||
        header.n_successors > (header.file_bytes - header.successors_offset) / sizeof(Successor)) {
        refuse(name, offsetof(Header, n_successors), "the successors lie outside the file");
    }
    if (header.map_offset % section_alignment != 0 ||
        header.map_offset < header.successors_offset + header.n_successors * sizeof(Successor) ||
        header.map_offset > header.file_bytes || header.map_bytes != header.file_bytes - header.map_offset) {
        refuse(name, offsetof(Header, map_offset),
               "the const map lies outside the file or inside another section");
    }
    if (header.n_bigrams > header.n_successors) {
        refuse(name, offsetof(Header, n_bigrams), "names more bigrams than successors");
    }
}

}  // namespace frozen

// The layout of a frozen file's map, from its first bytes (at least the header).
[[nodiscard]] inline MapLayout frozen_layout(const std::string& path) {
    Source source = Source::from_file(path, sizeof(frozen::Header));
    const auto size =
        static_cast<std::size_t>(std::min<std::uint64_t>(source.size_bytes(), sizeof(frozen::Header)));
    const std::span<const std::byte> start(source.take(size), size);
    if (!starts_with_magic(start, frozen_magic) || size < sizeof(frozen::Header)) {
        throw InputError(path, size, "is not a frozen static cache", "freeze llama.cpp's file first");
    }
    return static_cast<MapLayout>(
        load_unaligned<std::uint32_t>(start.data() + offsetof(frozen::Header, layout)));
}

// A frozen static cache in memory. Default-constructed it is empty. Loading checks the header, the sections
// and the map's geometry, so that find() never reads outside; verify() checks the content and is timed apart.
template <MapLayout layout>
class BasicFrozenFile {
public:
    BasicFrozenFile() = default;

    // `hook` sees the buffer before the file is read into it.
    [[nodiscard]] static BasicFrozenFile load(const std::string& path, BufferHook hook = nullptr) {
        return BasicFrozenFile(read_whole_file(path, hook), path);
    }
    [[nodiscard]] static BasicFrozenFile from_bytes(std::span<const std::byte> bytes,
                                                    const std::string& name = "<bytes>") {
        return BasicFrozenFile(AlignedBuffer::copy_of(bytes), name);
    }

    // The successors of a bigram, sorted by token; empty if it has none. InputError if the map is damaged.
    [[nodiscard]] std::span<const Successor> find(Bigram bigram) const {
        const std::uint64_t value = map_.lookup(bigram);
        if (value == map_absent) {
            return {};
        }
        const std::uint64_t first = value >> frozen::count_bits;
        const std::uint64_t count = value & (frozen::count_limit - 1);
        if (first + count > header_.n_successors) [[unlikely]] {
            refuse_value(bigram);
        }
        return {successors_ + first, static_cast<std::size_t>(count)};
    }

    // Checks every byte: the successors' digest and values, then the map's own checksum.
    void verify() const {
        if (buffer_.size() == 0) {
            return;
        }
        if (xxh64(std::as_bytes(successors())) != header_.successors_xxh64) {
            frozen::refuse(name_, header_.successors_offset, "the successors' checksum does not match");
        }
        const auto limit = static_cast<std::int64_t>(std::min(header_.token_limit, std::uint64_t{1} << 31));
        bool valid = true;
        for (const Successor& successor : successors()) {
            valid &= (successor.token >= 0) & (successor.token < limit) & (successor.count > 0);
        }
        if (!valid) {
            frozen::refuse(name_, header_.successors_offset, "a successor has a token or count out of range");
        }
        if (!map_.verify_checksum()) {
            frozen::refuse(name_, header_.map_offset, "the const map's checksum does not match");
        }
    }

    [[nodiscard]] std::span<const Successor> successors() const noexcept {
        return {successors_, static_cast<std::size_t>(header_.n_successors)};
    }
    [[nodiscard]] const BasicConstMapView<layout>& map() const noexcept { return map_; }
    [[nodiscard]] std::uint64_t n_bigrams() const noexcept { return header_.n_bigrams; }
    [[nodiscard]] std::uint64_t n_successors() const noexcept { return header_.n_successors; }
    [[nodiscard]] std::uint64_t vocabulary_size() const noexcept {
        return header_.vocabulary_size;
    }  // 0: unknown
    [[nodiscard]] std::uint64_t token_limit() const noexcept { return header_.token_limit; }
    [[nodiscard]] std::size_t static_bytes() const noexcept { return buffer_.size(); }

private:
    BasicFrozenFile(AlignedBuffer buffer, std::string name)
        : buffer_(std::move(buffer)), name_(std::move(name)) {
        if (buffer_.size() == 0) {
            return;  // an empty file is an empty cache
        }
        header_ = read_file_header<frozen::Header>(buffer_.bytes(), name_, frozen_magic, frozen::version,
                                                   frozen::words);
        frozen::check_sections(header_, name_);
        if (header_.layout != layout) {
            throw InputError(name_, offsetof(frozen::Header, layout),
                             layout == MapLayout::split
                                 ? "holds a paired map (PMAP0001), not a split one (VMAP0001)"
                                 : "holds a split map (VMAP0001), not a paired one (PMAP0001)",
                             "freeze the cache in the layout this variant reads");
        }
        successors_ = reinterpret_cast<const Successor*>(buffer_.data() + header_.successors_offset);
        map_ = BasicConstMapView<layout>(
            buffer_.bytes().subspan(static_cast<std::size_t>(header_.map_offset)), name_, header_.map_offset);
        if (map_.n_keys() != 0 && map_.n_keys() != header_.n_bigrams) {
            frozen::refuse(name_, offsetof(frozen::Header, n_bigrams),
                           "header and map differ in the number of bigrams");
        }
    }

    [[noreturn]] void refuse_value(Bigram bigram) const {
        frozen::refuse(name_, header_.map_offset,
                       "the const map's value of " + bigram_words(bigram) + " points outside the successors");
    }

    AlignedBuffer buffer_;
    frozen::Header header_{};
    const Successor* successors_ = nullptr;
    BasicConstMapView<layout> map_;
    std::string name_;
};

using FrozenFile = BasicFrozenFile<MapLayout::split>;
using PairedFrozenFile = BasicFrozenFile<MapLayout::paired>;

}  // namespace ladder
