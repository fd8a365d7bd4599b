#include "common/module.hpp"
#include "sorted_precheck/drafter.hpp"

LADDER_VARIANT_MODULE(sorted_precheck, ladder::alternative<ladder::SortedPrecheck>())
