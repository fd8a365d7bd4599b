// Rung 5 without its precheck: the static cache is one array behind a const map, read whole into one buffer.
#pragma once

#include "containers/sorted_ngram_map.hpp"
#include "drafting/lookup_drafter.hpp"
#include "formats/frozen_static_cache.hpp"

namespace ladder {

template <HugePages huge_pages = HugePages::off>
using Frozen = LookupDrafter<SortedNgramMap<>, FrozenStaticCache<MapLayout::split, huge_pages>, Ties::token,
                             Precheck::off>;

}  // namespace ladder
