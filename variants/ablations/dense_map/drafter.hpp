// Rung 3 over one growing array: each time it is full, every entry moves to an array of twice the size.
#pragma once

#include "base/hash.hpp"
#include "containers/dense_segmented_map.hpp"
#include "drafting/lookup_drafter.hpp"
#include "formats/map_static_cache.hpp"

namespace ladder {

template <class Hash>
using DenseOuterMap = DenseContiguousMap<Ngram, MapSuccessors, Hash>;

template <class Hash>
using DenseMapDrafter =
    LookupDrafter<DenseOuterMap<Hash>, MapStaticCache<DenseOuterMap<Hash>>, Ties::iteration, Precheck::off>;

}  // namespace ladder
