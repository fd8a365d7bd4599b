#include "bindings/module.hpp"
#include "ablations/sorted_lower_bound/drafter.hpp"

LADDER_VARIANT_MODULE(sorted_lower_bound, ladder::alternative<ladder::SortedLowerBound>())
