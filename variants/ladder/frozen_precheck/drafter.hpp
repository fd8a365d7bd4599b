// Rung 5: the frozen static cache, and n-grams that cannot qualify rejected before scoring.
#pragma once

#include "containers/sorted_ngram_map.hpp"
#include "drafting/lookup_drafter.hpp"
#include "formats/frozen_static_cache.hpp"

namespace ladder {

template <HugePages huge_pages = HugePages::off>
using FrozenPrecheck = LookupDrafter<SortedNgramMap<>, FrozenStaticCache<MapLayout::split, huge_pages>,
                                     Ties::token, Precheck::on>;

}  // namespace ladder
