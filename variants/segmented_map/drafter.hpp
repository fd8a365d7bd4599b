// Rung 3: the outer map's entries lie densely in segments of 4096 bytes; growing moves none of them.
#pragma once

#include "common/dense_segmented_map.hpp"
#include "common/hash.hpp"
#include "common/lookup_drafter.hpp"
#include "common/map_static_cache.hpp"

namespace ladder {

using SegmentedOuterMap = DenseSegmentedMap<Ngram, MapSuccessors, AvalanchingNgramHash>;

using SegmentedMapDrafter = LookupDrafter<SegmentedOuterMap, MapStaticCache<SegmentedOuterMap>,
                                          TieClass::iteration, Precheck::off>;

}  // namespace ladder
