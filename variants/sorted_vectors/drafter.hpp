// Rung 4: successors in a vector sorted by token, searched in a fixed number of rounds.
#pragma once

#include "common/lookup_drafter.hpp"
#include "common/map_static_cache.hpp"
#include "common/sorted_ngram_map.hpp"

namespace ladder {

using SortedVectors =
    LookupDrafter<SortedNgramMap, MapStaticCache<SortedNgramMap>, TieClass::token, Precheck::off>;

}  // namespace ladder
