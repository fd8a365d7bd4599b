#include "reference_access/drafter.hpp"
#include "common/module.hpp"

LADDER_VARIANT_MODULE(reference_access, ladder::ReferenceAccess)
