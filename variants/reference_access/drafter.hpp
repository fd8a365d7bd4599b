// Rung 2: the containers of rung 1, read by reference.
#pragma once

#include <unordered_map>

#include "common/hash.hpp"
#include "common/lookup_drafter.hpp"
#include "common/map_static_cache.hpp"

namespace ladder {

using ReferenceAccessMap = std::unordered_map<Ngram, MapSuccessors, XorNgramHash>;

using ReferenceAccess = LookupDrafter<ReferenceAccessMap, MapStaticCache<ReferenceAccessMap>,
                                      TieClass::iteration, Precheck::off>;

}  // namespace ladder
