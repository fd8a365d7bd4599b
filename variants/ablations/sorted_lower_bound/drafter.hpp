// Rung 4 with the library's binary search in place of the one with a fixed number of rounds.
#pragma once

#include "base/hash.hpp"
#include "containers/dense_segmented_map.hpp"
#include "drafting/lookup_drafter.hpp"
#include "formats/map_static_cache.hpp"

namespace ladder {

using LowerBoundMap = DenseSegmentedMap<Ngram, BasicSortedSuccessors<LowerBoundSearch>, AvalanchingNgramHash>;

using SortedLowerBound =
    LookupDrafter<LowerBoundMap, MapStaticCache<LowerBoundMap>, Ties::token, Precheck::off>;

}  // namespace ladder
