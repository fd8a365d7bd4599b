#include "common/module.hpp"
#include "segmented_precheck/drafter.hpp"

LADDER_VARIANT_MODULE(segmented_precheck, ladder::alternative<ladder::SegmentedPrecheck>())
