// Rung 3: the outer map's entries lie densely in segments of 4096 bytes; growing moves none of them.
#pragma once

#include <cstddef>

#include "base/hash.hpp"
#include "containers/dense_segmented_map.hpp"
#include "drafting/lookup_drafter.hpp"
#include "formats/map_static_cache.hpp"

namespace ladder {

template <class Hash, std::size_t segment_bytes>
using SegmentedOuterMap = DenseSegmentedMap<Ngram, MapSuccessors, Hash, segment_bytes>;

template <class Hash = AvalanchingNgramHash, std::size_t segment_bytes = 4096,
          Precheck precheck = Precheck::off>
using SegmentedMapDrafter =
    LookupDrafter<SegmentedOuterMap<Hash, segment_bytes>,
                  MapStaticCache<SegmentedOuterMap<Hash, segment_bytes>>, Ties::iteration, precheck>;

}  // namespace ladder
