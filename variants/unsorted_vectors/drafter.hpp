// Rung 4 without the sorting: fine for the many n-grams with one successor, not for the few with thousands.
#pragma once

#include "common/dense_segmented_map.hpp"
#include "common/hash.hpp"
#include "common/lookup_drafter.hpp"
#include "common/map_static_cache.hpp"

namespace ladder {

using UnsortedMap = DenseSegmentedMap<Ngram, UnsortedSuccessors, AvalanchingNgramHash>;

using UnsortedVectors =
    LookupDrafter<UnsortedMap, MapStaticCache<UnsortedMap>, TieClass::token, Precheck::off>;

}  // namespace ladder
