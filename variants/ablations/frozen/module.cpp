#include "bindings/module.hpp"
#include "ablations/frozen/drafter.hpp"

LADDER_VARIANT_MODULE(frozen,
                      ladder::alternative<ladder::Frozen<ladder::HugePages::off>>({{"huge_pages", "off"}}),
                      ladder::alternative<ladder::Frozen<ladder::HugePages::on>>({{"huge_pages", "on"}}))
