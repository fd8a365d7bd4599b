#include "bindings/module.hpp"
#include "ladder/frozen_precheck/drafter.hpp"

LADDER_VARIANT_MODULE(
    frozen_precheck,
    ladder::alternative<ladder::FrozenPrecheck<ladder::HugePages::off>>({{"huge_pages", "off"}}),
    ladder::alternative<ladder::FrozenPrecheck<ladder::HugePages::on>>({{"huge_pages", "on"}}))
