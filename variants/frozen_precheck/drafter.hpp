// Rung 5: the frozen static cache, and n-grams that cannot qualify rejected before scoring.
#pragma once

#include "common/frozen_static_cache.hpp"
#include "common/lookup_drafter.hpp"
#include "common/sorted_ngram_map.hpp"

namespace ladder {

template <HugePages huge_pages = HugePages::off>
using FrozenPrecheck = LookupDrafter<SortedNgramMap<>, FrozenStaticCache<MapLayout::split, huge_pages>,
                                     TieClass::token, Precheck::on>;

}  // namespace ladder
