// Arctic Inference's suffix tree, drafting a chain: the likeliest path.
#pragma once

#include "peers/shared/arctic_suffix_tree.hpp"

namespace ladder {

using ArcticChain = ArcticSuffixTree<false>;

}  // namespace ladder
