// ankerl::unordered_dense's maps where CMake found them, ours of the same design elsewhere: one alias
// chooses.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>

#include "containers/segmented_map.hpp"

#ifdef LADDER_UNORDERED_DENSE
#include <ankerl/unordered_dense.h>
#endif

namespace ladder {

#ifdef LADDER_UNORDERED_DENSE

// "ankerl <version>" or "ladder"; recorded in every result.
inline constexpr const char* dense_map_source = LADDER_UNORDERED_DENSE;

// Values in segments (4096 bytes is the original's default).
template <class Key, class T, class Hash, std::size_t SegmentBytes = 4096>
using DenseSegmentedMap =
    ankerl::unordered_dense::map<Key, T, Hash, std::equal_to<Key>,
                                 ankerl::unordered_dense::segmented_vector<
                                     std::pair<Key, T>, std::allocator<std::pair<Key, T>>, SegmentBytes>>;

// The same map over one growing array.
template <class Key, class T, class Hash>
using DenseContiguousMap = ankerl::unordered_dense::map<Key, T, Hash>;

#else

inline constexpr const char* dense_map_source = "ladder";

template <class Key, class T, class Hash, std::size_t SegmentBytes = 4096>
using DenseSegmentedMap = SegmentedMap<Key, T, Hash, std::equal_to<Key>, SegmentBytes>;

template <class Key, class T, class Hash>
using DenseContiguousMap = DenseMap<Key, T, Hash>;

#endif

// Bytes allocated by the map itself (what mapped values own is not in it), whichever map it is.
template <class Map>
[[nodiscard]] std::size_t map_memory_bytes(const Map& map) noexcept {
    if constexpr (requires { map.memory_bytes(); }) {
        return map.memory_bytes();
    } else {
        return map.values().capacity() * sizeof(typename Map::value_type) +
               map.bucket_count() * sizeof(typename Map::bucket_type);
    }
}

}  // namespace ladder
