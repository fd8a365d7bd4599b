#include "bindings/module.hpp"
#include "ablations/reference_precheck/drafter.hpp"

LADDER_VARIANT_MODULE(reference_precheck, ladder::alternative<ladder::ReferencePrecheck>())
