// Rung 5: the frozen static cache, and n-grams that cannot qualify rejected before scoring.
#pragma once

#include "common/frozen_static_cache.hpp"
#include "common/lookup_drafter.hpp"
#include "common/sorted_ngram_map.hpp"

namespace ladder {

using FrozenPrecheck = LookupDrafter<SortedNgramMap, FrozenStaticCache, TieClass::token, Precheck::on>;

}  // namespace ladder
