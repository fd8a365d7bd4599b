#include "bindings/module.hpp"
#include "ablations/frozen_paired/drafter.hpp"

LADDER_VARIANT_MODULE(frozen_paired, ladder::alternative<ladder::FrozenPaired>())
