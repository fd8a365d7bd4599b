#include "common/module.hpp"
#include "frozen_paired/drafter.hpp"

LADDER_VARIANT_MODULE(frozen_paired, ladder::alternative<ladder::FrozenPaired>())
