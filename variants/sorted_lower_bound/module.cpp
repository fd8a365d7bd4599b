#include "common/module.hpp"
#include "sorted_lower_bound/drafter.hpp"

LADDER_VARIANT_MODULE(sorted_lower_bound, ladder::alternative<ladder::SortedLowerBound>())
