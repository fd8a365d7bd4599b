#include "bindings/module.hpp"
#include "ablations/segmented_precheck/drafter.hpp"

LADDER_VARIANT_MODULE(segmented_precheck, ladder::alternative<ladder::SegmentedPrecheck>())
