// Rung 2: the containers of rung 1, read by reference.
#pragma once

#include <unordered_map>

#include "base/hash.hpp"
#include "drafting/lookup_drafter.hpp"
#include "formats/map_static_cache.hpp"

namespace ladder {

template <class Hash>
using NodeNgramMap = std::unordered_map<Ngram, MapSuccessors, Hash>;

template <class Hash, Precheck precheck = Precheck::off>
using ReferenceAccess =
    LookupDrafter<NodeNgramMap<Hash>, MapStaticCache<NodeNgramMap<Hash>>, Ties::iteration, precheck>;

}  // namespace ladder
