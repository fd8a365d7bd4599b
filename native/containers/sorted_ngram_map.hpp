// The context and dynamic caches from rung 4 on: rung 3's outer map, sorted vectors inside.
#pragma once

#include <cstddef>

#include "base/hash.hpp"
#include "containers/dense_segmented_map.hpp"
#include "containers/successors.hpp"

namespace ladder {

template <class Hash = AvalanchingNgramHash, std::size_t segment_bytes = 4096>
using SortedNgramMap = DenseSegmentedMap<Ngram, SortedSuccessors, Hash, segment_bytes>;

}  // namespace ladder
