// Arctic Inference's suffix tree, drafting a chain: the likeliest path.
#pragma once

#include "peers/shared/arctic_suffix_tree.hpp"

namespace ladder {

template <int factor_percent, int min_percent, bool relearn>
using ArcticChain = ArcticSuffixTree<ArcticSettings{factor_percent, min_percent, relearn, false}>;

}  // namespace ladder
