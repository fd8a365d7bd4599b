#include "segmented_map/drafter.hpp"
#include "common/module.hpp"

LADDER_VARIANT_MODULE(segmented_map, ladder::SegmentedMapDrafter)
