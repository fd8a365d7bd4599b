// The context and dynamic caches from rung 4 on: rung 3's outer map, sorted vectors inside.
#pragma once

#include <cstddef>

#include "common/dense_segmented_map.hpp"
#include "common/hash.hpp"
#include "common/successors.hpp"

namespace ladder {

template <class Hash = AvalanchingNgramHash, std::size_t segment_bytes = 4096>
using SortedNgramMap = DenseSegmentedMap<Ngram, SortedSuccessors, Hash, segment_bytes>;

}  // namespace ladder
