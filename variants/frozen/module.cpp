#include "frozen/drafter.hpp"
#include "common/module.hpp"

LADDER_VARIANT_MODULE(frozen, ladder::Frozen)
