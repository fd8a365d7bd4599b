// A verified const map from bigrams to 64-bit values, in the published formats VMAP0001 (split) and PMAP0001
// (paired): a binary fuse table whose three probed words XOR to the value, and a 64-bit check word that tells
// absent keys.
//
//   bytes 0..7 magic, 8..15 seed, then four uint32: segment length, segment count, slots, keys (0 if
//   unknown); split: all value words, then all check words; paired: value word and check word side by side,
//   slot by slot; last 8 bytes: FNV-1a of everything before. Little-endian.
//
// Keys are hashed with XXH64 over the two tokens as 8 little-endian bytes.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>

#include "base/aligned_buffer.hpp"
#include "base/check.hpp"
#include "base/types.hpp"
#include "base/xxh64.hpp"

namespace ladder {

enum class MapLayout : std::uint32_t { split = 0, paired = 1 };

// What lookup() gives for a key that is not in the map; never a value.
inline constexpr std::uint64_t map_absent = std::numeric_limits<std::uint64_t>::max();

namespace const_map {

inline constexpr std::size_t checksum_bytes = 8;
inline constexpr std::size_t slot_bytes = 16;
inline constexpr std::array<std::uint8_t, 8> split_magic{'V', 'M', 'A', 'P', '0', '0', '0', '1'};
inline constexpr std::array<std::uint8_t, 8> paired_magic{'P', 'M', 'A', 'P', '0', '0', '0', '1'};

[[nodiscard]] constexpr const std::array<std::uint8_t, 8>& magic_of(MapLayout layout) noexcept {
    return layout == MapLayout::split ? split_magic : paired_magic;
}

struct Header {
    std::array<std::uint8_t, 8> magic;
    std::uint64_t seed;
    std::uint32_t segment_length;
    std::uint32_t segment_count;
    std::uint32_t n_slots;
    std::uint32_t n_keys;
};
static_assert(sizeof(Header) == 32);

// The high half of a 64 x 32 bit product: maps a hash evenly onto 0..limit-1, in the order of the hashes.
[[nodiscard]] constexpr std::uint32_t scale(std::uint64_t hash, std::uint32_t limit) noexcept {
    const std::uint64_t low = (hash & 0xffffffffU) * limit;
    const std::uint64_t high = (hash >> 32) * limit;
    return static_cast<std::uint32_t>((high + (low >> 32)) >> 32);
}

[[nodiscard]] constexpr std::uint64_t check_word(std::uint64_t hash) noexcept {
    return hash ^ (hash >> 32);
}

struct Positions {
    std::uint32_t first;
    std::uint32_t second;
    std::uint32_t third;
};

// Where a hash probes. Every position is below slots() because segment_length is a power of two.
struct Geometry {
    std::uint64_t seed = 0;
    std::uint32_t segment_length = 0;
    std::uint32_t segment_mask = 0;
    std::uint32_t first_limit = 0;  // segment_count * segment_length

    [[nodiscard]] std::uint64_t hash(Bigram key) const noexcept {
        const std::uint64_t word = static_cast<std::uint32_t>(key.first) |
                                   (static_cast<std::uint64_t>(static_cast<std::uint32_t>(key.second)) << 32);
        std::uint64_t mixed = xxh64_word(word) + seed;
        mixed = (mixed ^ (mixed >> 33)) * 0xff51afd7ed558ccdU;
        mixed = (mixed ^ (mixed >> 33)) * 0xc4ceb9fe1a85ec53U;
        return mixed ^ (mixed >> 33);
    }
    [[nodiscard]] Positions probe(std::uint64_t hash) const noexcept {
        const std::uint32_t first = scale(hash, first_limit);
        const std::uint32_t second = first + segment_length;
        return {first, second ^ (static_cast<std::uint32_t>(hash >> 18) & segment_mask),
                (second + segment_length) ^ (static_cast<std::uint32_t>(hash) & segment_mask)};
    }
    [[nodiscard]] std::uint32_t slots() const noexcept { return first_limit + 2 * segment_length; }
};

[[nodiscard]] inline std::uint64_t fnv1a(std::span<const std::byte> bytes) noexcept {
    std::uint64_t hash = 0xcbf29ce484222325U;
    for (const std::byte byte : bytes) {
        hash = (hash ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001b3U;
    }
    return hash;
}

}  // namespace const_map

// Opens a map in place; the bytes (8-byte aligned) must outlive the view. Whatever the bytes are, no lookup
// reads outside them: sizes and segments are validated here. Default-constructed it is an empty map.
template <MapLayout layout>
class BasicConstMapView {
public:
    BasicConstMapView() = default;
    // `name` and `base` (where the map starts in that file) are for errors only.
    explicit BasicConstMapView(std::span<const std::byte> bytes, const std::string& name = "<bytes>",
                               std::uint64_t base = 0) {
        const auto refuse = [&](std::uint64_t offset, const std::string& problem) {
            throw InputError(name, base + offset, problem, "the file is damaged; build it again");
        };
        if (bytes.size() < sizeof(const_map::Header) + const_map::checksum_bytes) {
            refuse(bytes.size(), "the const map is cut inside its header");
        }
        const_map::Header header;
        std::memcpy(&header, bytes.data(), sizeof header);
        if (header.magic != const_map::magic_of(layout)) {
            refuse(0, "the const map does not begin with its magic");
        }
        const std::uint64_t wanted =
            sizeof header + std::uint64_t{header.n_slots} * const_map::slot_bytes + const_map::checksum_bytes;
        if (bytes.size() != wanted) {
            refuse(24, "the const map names " + std::to_string(header.n_slots) + " slots, which take " +
                           std::to_string(wanted) + " bytes, not " + std::to_string(bytes.size()));
        }
        if (header.n_keys > header.n_slots) {
            refuse(28, "the const map names more keys than slots");
        }
        if (header.n_slots > 0 &&
            (!std::has_single_bit(header.segment_length) || header.segment_count == 0 ||
             (std::uint64_t{header.segment_count} + 2) * header.segment_length != header.n_slots)) {
            refuse(16, "the const map's segments do not add up to its slots");
        }
        if (reinterpret_cast<std::uintptr_t>(bytes.data()) % alignof(std::uint64_t) != 0) {
            throw InternalError("a const map was opened at an address that is not a multiple of 8");
        }
        bytes_ = bytes;
        n_keys_ = header.n_keys;
        n_slots_ = header.n_slots;
        words_ = reinterpret_cast<const std::uint64_t*>(bytes.data() + sizeof header);
        if (n_slots_ > 0) {
            geometry_ = {header.seed, header.segment_length, header.segment_length - 1,
                         header.segment_count * header.segment_length};
        }
    }

    // The key's value, or map_absent.
    [[nodiscard]] std::uint64_t lookup(Bigram key) const noexcept {
        if (n_slots_ == 0) [[unlikely]] {
            return map_absent;
        }
        const std::uint64_t hash = geometry_.hash(key);
        const const_map::Positions at = geometry_.probe(hash);
        if ((check(at.first) ^ check(at.second) ^ check(at.third)) != const_map::check_word(hash)) {
            return map_absent;
        }
        return value(at.first) ^ value(at.second) ^ value(at.third);
    }

    // Whether the stored FNV-1a checksum is that of the bytes: about a nanosecond a byte.
    [[nodiscard]] bool verify_checksum() const noexcept {
        if (bytes_.empty()) {
            return true;
        }
        const std::size_t covered = bytes_.size() - const_map::checksum_bytes;
        return const_map::fnv1a(bytes_.first(covered)) ==
               load_unaligned<std::uint64_t>(bytes_.data() + covered);
    }

    [[nodiscard]] std::uint32_t n_keys() const noexcept { return n_keys_; }  // 0 if the writer did not say
    [[nodiscard]] std::uint32_t n_slots() const noexcept { return n_slots_; }
    [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }

private:
    [[nodiscard]] std::uint64_t value(std::uint32_t slot) const noexcept {
        return layout == MapLayout::split ? words_[slot] : words_[std::size_t{slot} * 2];
    }
    [[nodiscard]] std::uint64_t check(std::uint32_t slot) const noexcept {
        return layout == MapLayout::split ? words_[std::size_t{n_slots_} + slot]
                                          : words_[std::size_t{slot} * 2 + 1];
    }

    std::span<const std::byte> bytes_;
    const std::uint64_t* words_ = nullptr;
    const_map::Geometry geometry_;
    std::uint32_t n_slots_ = 0;
    std::uint32_t n_keys_ = 0;
};

}  // namespace ladder
