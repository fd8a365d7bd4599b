// Rung 4: successors in a vector sorted by token, searched in a fixed number of rounds.
#pragma once

#include <cstddef>

#include "containers/sorted_ngram_map.hpp"
#include "drafting/lookup_drafter.hpp"
#include "formats/map_static_cache.hpp"

namespace ladder {

template <class Hash = AvalanchingNgramHash, std::size_t segment_bytes = 4096,
          Precheck precheck = Precheck::off>
using SortedVectors =
    LookupDrafter<SortedNgramMap<Hash, segment_bytes>, MapStaticCache<SortedNgramMap<Hash, segment_bytes>>,
                  Ties::token, precheck>;

}  // namespace ladder
