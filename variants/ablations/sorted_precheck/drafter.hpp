// Rung 4 with the precheck and nothing else of rung 5.
#pragma once

#include "ladder/sorted_vectors/drafter.hpp"

namespace ladder {

using SortedPrecheck = SortedVectors<AvalanchingNgramHash, 4096, Precheck::on>;

}  // namespace ladder
