// The context and dynamic caches from rung 4 on: rung 3's outer map, sorted vectors inside.
#pragma once

#include "common/dense_segmented_map.hpp"
#include "common/hash.hpp"
#include "common/successors.hpp"

namespace ladder {

using SortedNgramMap = DenseSegmentedMap<Ngram, SortedSuccessors, AvalanchingNgramHash>;

}  // namespace ladder
