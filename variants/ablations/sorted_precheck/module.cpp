#include "bindings/module.hpp"
#include "ablations/sorted_precheck/drafter.hpp"

LADDER_VARIANT_MODULE(sorted_precheck, ladder::alternative<ladder::SortedPrecheck>())
