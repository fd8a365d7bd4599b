// Builds the const map: the binary fuse construction.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "base/aligned_buffer.hpp"
#include "base/check.hpp"
#include "base/types.hpp"
#include "containers/const_map.hpp"

namespace ladder {

namespace const_map {

// Table sizes of the binary fuse construction for three probes: segments grow with the logarithm of the
// number of keys, the room to spare shrinks towards an eighth. After a few failed seeds a little more room is
// given.
[[nodiscard]] inline Geometry size_for(std::size_t n_keys, unsigned attempt) {
    constexpr std::uint32_t longest_segment = 1U << 18;
    const auto keys = static_cast<double>(n_keys);
    const double exponent = std::floor(std::log(keys) / std::log(3.33) + 2.25);
    const std::uint32_t length = std::min(longest_segment, 1U << static_cast<unsigned>(exponent));
    const double room = n_keys < 2 ? 1.0 : std::max(1.125, 0.875 + 0.25 * std::log(1e6) / std::log(keys));
    const double slots = std::ceil(keys * room * (1.0 + 0.05 * (attempt / 4)));
    const double segments = std::max(3.0, std::ceil(slots / length));
    if (segments * length > 4294967295.0) {
        throw InputError("const map: " + std::to_string(n_keys) + " keys are too many; use a smaller corpus");
    }
    Geometry geometry;
    geometry.segment_length = length;
    geometry.segment_mask = length - 1;
    geometry.first_limit = (static_cast<std::uint32_t>(segments) - 2) * length;
    return geometry;
}

[[nodiscard]] constexpr std::uint64_t seed_of(unsigned attempt) noexcept {
    // splitmix64: seeds are fixed by the attempt, so that equal input gives equal bytes.
    std::uint64_t seed = (attempt + 1) * 0x9e3779b97f4a7c15U;
    seed = (seed ^ (seed >> 30)) * 0xbf58476d1ce4e5b9U;
    seed = (seed ^ (seed >> 27)) * 0x94d049bb133111ebU;
    return seed ^ (seed >> 31);
}

// One construction: 8 bytes a slot, 24 bytes a key beside the input.
class Peeler {
public:
    Peeler(std::span<const Bigram> keys, const Geometry& geometry) : geometry_(geometry) {
        sort_entries(keys);
        count_slots();
        peel();
        slots_ = {};
    }

    [[nodiscard]] bool complete() const noexcept { return removed_.size() == entries_.size(); }

    // Fills the slots in the reverse of the order of removal: at its turn an entry's own slot is still zero
    // and the other two are final. assign(slot, others: Positions, hash, key index).
    template <class Assign>
    void assign_all(Assign&& assign) const {
        for (auto removed = removed_.rbegin(); removed != removed_.rend(); ++removed) {
            const Entry& entry = entries_[removed->entry];
            assign(removed->slot, geometry_.probe(entry.hash), entry.hash, entry.key);
        }
    }

private:
    struct Entry {
        std::uint64_t hash;
        std::uint32_t key;
    };
    struct Slot {
        std::uint32_t entries_xor = 0;  // with one entry left: that entry
        std::uint32_t n_entries = 0;
    };
    struct Removed {
        std::uint32_t slot;
        std::uint32_t entry;
    };

    // By the high bits of the hash, which decide the segment: neighbouring entries then touch neighbouring
    // slots.
    void sort_entries(std::span<const Bigram> keys) {
        const auto bits =
            static_cast<unsigned>(std::bit_width(geometry_.first_limit / geometry_.segment_length)) + 2;
        const unsigned shift = 64 - bits;
        std::vector<std::uint32_t> starts((std::size_t{1} << bits) + 1, 0);
        for (const Bigram key : keys) {
            ++starts[(geometry_.hash(key) >> shift) + 1];
        }
        for (std::size_t block = 1; block < starts.size(); ++block) {
            starts[block] += starts[block - 1];
        }
        entries_.resize(keys.size());
        for (std::size_t i = 0; i < keys.size(); ++i) {
            const std::uint64_t hash = geometry_.hash(keys[i]);
            entries_[starts[hash >> shift]++] = {hash, static_cast<std::uint32_t>(i)};
        }
    }

    void count_slots() {
        slots_.resize(geometry_.slots());
        for (std::size_t i = 0; i < entries_.size(); ++i) {
            const Positions at = geometry_.probe(entries_[i].hash);
            for (const std::uint32_t position : {at.first, at.second, at.third}) {
                slots_[position].entries_xor ^= static_cast<std::uint32_t>(i);
                ++slots_[position].n_entries;
            }
        }
    }

    void peel() {
        removed_.reserve(entries_.size());
        std::vector<std::uint32_t> pending;
        for (std::uint32_t start = 0; start < slots_.size(); ++start) {
            pending.push_back(start);
            while (!pending.empty()) {
                const std::uint32_t slot = pending.back();
                pending.pop_back();
                if (slots_[slot].n_entries == 1) {
                    remove(slot, pending);
                }
            }
        }
    }

    void remove(std::uint32_t slot, std::vector<std::uint32_t>& pending) {
        const std::uint32_t entry = slots_[slot].entries_xor;
        removed_.push_back({slot, entry});
        const Positions at = geometry_.probe(entries_[entry].hash);
        for (const std::uint32_t position : {at.first, at.second, at.third}) {
            slots_[position].entries_xor ^= entry;
            if (--slots_[position].n_entries == 1) {
                pending.push_back(position);
            }
        }
    }

    Geometry geometry_;
    std::vector<Entry> entries_;
    std::vector<Slot> slots_;
    std::vector<Removed> removed_;
};

// Two equal keys can never be told apart by any seed. Looked for only after a failed construction.
inline void refuse_repeated_keys(std::span<const Bigram> keys) {
    std::vector<Bigram> sorted(keys.begin(), keys.end());
    std::sort(sorted.begin(), sorted.end());
    const auto repeated = std::adjacent_find(sorted.begin(), sorted.end());
    if (repeated != sorted.end()) {
        throw InputError("const map: key (" + std::to_string(repeated->first) + ", " +
                         std::to_string(repeated->second) + "): occurs twice; give every key once");
    }
}

template <MapLayout layout>
[[nodiscard]] AlignedBuffer write_map(const Peeler* peeler, const Geometry& geometry,
                                      std::span<const std::uint64_t> values) {
    const std::size_t n_slots = peeler == nullptr ? 0 : geometry.slots();
    AlignedBuffer buffer(sizeof(Header) + n_slots * slot_bytes + checksum_bytes);
    std::memset(buffer.data(), 0, buffer.size());
    Header header{magic_of(layout),
                  geometry.seed,
                  geometry.segment_length,
                  0,
                  static_cast<std::uint32_t>(n_slots),
                  static_cast<std::uint32_t>(values.size())};
    auto* const words = reinterpret_cast<std::uint64_t*>(buffer.data() + sizeof header);
    if (peeler != nullptr) {
        header.segment_count = geometry.first_limit / geometry.segment_length;
        constexpr std::size_t stride = layout == MapLayout::split ? 1 : 2;
        std::uint64_t* const checks = words + (layout == MapLayout::split ? n_slots : 1);
        peeler->assign_all([&](std::uint32_t slot, Positions at, std::uint64_t hash, std::uint32_t key) {
            const std::size_t first = at.first * stride;
            const std::size_t second = at.second * stride;
            const std::size_t third = at.third * stride;
            words[slot * stride] = values[key] ^ words[first] ^ words[second] ^ words[third];
            checks[slot * stride] = check_word(hash) ^ checks[first] ^ checks[second] ^ checks[third];
        });
    }
    std::memcpy(buffer.data(), &header, sizeof header);
    const std::size_t covered = buffer.size() - checksum_bytes;
    const std::uint64_t checksum = fnv1a(buffer.bytes().first(covered));
    std::memcpy(buffer.data() + covered, &checksum, sizeof checksum);
    return buffer;
}

}  // namespace const_map

// The bytes of a map from keys[i] to values[i]; equal input gives equal bytes. InputError on a repeated key
// or on the value that means 'absent'.
template <MapLayout layout>
[[nodiscard]] AlignedBuffer build_const_map(std::span<const Bigram> keys,
                                            std::span<const std::uint64_t> values) {
    LADDER_CHECK(keys.size() == values.size());
    if (std::find(values.begin(), values.end(), map_absent) != values.end()) {
        throw InputError("const map: value 2^64-1: means 'absent'; use a smaller value");
    }
    if (keys.empty()) {
        return const_map::write_map<layout>(nullptr, {}, values);
    }
    constexpr unsigned max_attempts = 100;
    for (unsigned attempt = 0; attempt < max_attempts; ++attempt) {
        const_map::Geometry geometry = const_map::size_for(keys.size(), attempt);
        geometry.seed = const_map::seed_of(attempt);
        const const_map::Peeler peeler(keys, geometry);
        if (peeler.complete()) {
            return const_map::write_map<layout>(&peeler, geometry, values);
        }
        if (attempt == 0) {
            const_map::refuse_repeated_keys(keys);
        }
    }
    throw InternalError("no seed built the const map");
}

[[nodiscard]] inline AlignedBuffer build_const_map(MapLayout layout, std::span<const Bigram> keys,
                                                   std::span<const std::uint64_t> values) {
    return layout == MapLayout::split ? build_const_map<MapLayout::split>(keys, values)
                                      : build_const_map<MapLayout::paired>(keys, values);
}

}  // namespace ladder
