// Rung 5 without its precheck, over the paired const map.
#pragma once

#include "common/frozen_static_cache.hpp"
#include "common/lookup_drafter.hpp"
#include "common/sorted_ngram_map.hpp"

namespace ladder {

using FrozenPaired =
    LookupDrafter<SortedNgramMap<>, FrozenStaticCache<MapLayout::paired>, TieClass::token, Precheck::off>;

}  // namespace ladder
