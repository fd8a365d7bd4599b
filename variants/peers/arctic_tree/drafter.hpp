// Arctic Inference's suffix tree, drafting a tree: the likeliest nodes, whichever path they are on.
#pragma once

#include "peers/shared/arctic_suffix_tree.hpp"

namespace ladder {

using ArcticTree = ArcticSuffixTree<true>;

}  // namespace ladder
