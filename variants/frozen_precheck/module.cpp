#include "frozen_precheck/drafter.hpp"
#include "common/module.hpp"

LADDER_VARIANT_MODULE(frozen_precheck, ladder::FrozenPrecheck)
