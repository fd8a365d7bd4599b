#include "common/module.hpp"
#include "reference_precheck/drafter.hpp"

LADDER_VARIANT_MODULE(reference_precheck, ladder::alternative<ladder::ReferencePrecheck>())
