// Rung 5 without its precheck, over the paired const map.
#pragma once

#include "containers/sorted_ngram_map.hpp"
#include "drafting/lookup_drafter.hpp"
#include "formats/frozen_static_cache.hpp"

namespace ladder {

using FrozenPaired =
    LookupDrafter<SortedNgramMap<>, FrozenStaticCache<MapLayout::paired>, Ties::token, Precheck::off>;

}  // namespace ladder
