// Arctic Inference's suffix tree, drafting a tree: the likeliest nodes, whichever path they are on.
#pragma once

#include "peers/shared/arctic_suffix_tree.hpp"

namespace ladder {

template <int factor_percent, int min_percent, bool relearn>
using ArcticTree = ArcticSuffixTree<ArcticSettings{factor_percent, min_percent, relearn, true}>;

}  // namespace ladder
