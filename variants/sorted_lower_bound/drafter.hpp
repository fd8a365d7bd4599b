// Rung 4 with the library's binary search in place of the one with a fixed number of rounds.
#pragma once

#include "common/dense_segmented_map.hpp"
#include "common/hash.hpp"
#include "common/lookup_drafter.hpp"
#include "common/map_static_cache.hpp"

namespace ladder {

using LowerBoundMap = DenseSegmentedMap<Ngram, BasicSortedSuccessors<LowerBoundSearch>, AvalanchingNgramHash>;

using SortedLowerBound =
    LookupDrafter<LowerBoundMap, MapStaticCache<LowerBoundMap>, TieClass::token, Precheck::off>;

}  // namespace ladder
