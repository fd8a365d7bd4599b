#include "bindings/module.hpp"
#include "ablations/unsorted_vectors/drafter.hpp"

LADDER_VARIANT_MODULE(unsorted_vectors, ladder::alternative<ladder::UnsortedVectors>())
