// Rung 3 over one growing array: each time it is full, every entry moves to an array of twice the size.
#pragma once

#include "common/dense_segmented_map.hpp"
#include "common/hash.hpp"
#include "common/lookup_drafter.hpp"
#include "common/map_static_cache.hpp"

namespace ladder {

template <class Hash>
using DenseOuterMap = DenseContiguousMap<Ngram, MapSuccessors, Hash>;

template <class Hash>
using DenseMapDrafter = LookupDrafter<DenseOuterMap<Hash>, MapStaticCache<DenseOuterMap<Hash>>,
                                      TieClass::iteration, Precheck::off>;

}  // namespace ladder
