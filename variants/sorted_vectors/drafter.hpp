// Rung 4: successors in a vector sorted by token, searched in a fixed number of rounds.
#pragma once

#include <cstddef>

#include "common/lookup_drafter.hpp"
#include "common/map_static_cache.hpp"
#include "common/sorted_ngram_map.hpp"

namespace ladder {

template <class Hash = AvalanchingNgramHash, std::size_t segment_bytes = 4096,
          Precheck precheck = Precheck::off>
using SortedVectors =
    LookupDrafter<SortedNgramMap<Hash, segment_bytes>, MapStaticCache<SortedNgramMap<Hash, segment_bytes>>,
                  TieClass::token, precheck>;

}  // namespace ladder
