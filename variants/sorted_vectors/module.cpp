#include "sorted_vectors/drafter.hpp"
#include "common/module.hpp"

LADDER_VARIANT_MODULE(sorted_vectors, ladder::SortedVectors)
