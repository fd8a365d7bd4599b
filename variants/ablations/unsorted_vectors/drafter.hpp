// Rung 4 without the sorting: fine for the many n-grams with one successor, not for the few with thousands.
#pragma once

#include "base/hash.hpp"
#include "containers/dense_segmented_map.hpp"
#include "drafting/lookup_drafter.hpp"
#include "formats/map_static_cache.hpp"

namespace ladder {

using UnsortedMap = DenseSegmentedMap<Ngram, UnsortedSuccessors, AvalanchingNgramHash>;

using UnsortedVectors = LookupDrafter<UnsortedMap, MapStaticCache<UnsortedMap>, Ties::token, Precheck::off>;

}  // namespace ladder
