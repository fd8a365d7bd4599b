// Rung 3 with the precheck and nothing else of rung 5.
#pragma once

#include "ladder/segmented_map/drafter.hpp"

namespace ladder {

using SegmentedPrecheck = SegmentedMapDrafter<AvalanchingNgramHash, 4096, Precheck::on>;

}  // namespace ladder
