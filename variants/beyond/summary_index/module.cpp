#include "bindings/module.hpp"
#include "beyond/summary_index/drafter.hpp"

LADDER_VARIANT_MODULE(
    summary_index, ladder::alternative<ladder::SummaryIndex<ladder::HugePages::off>>({{"huge_pages", "off"}}),
    ladder::alternative<ladder::SummaryIndex<ladder::HugePages::on>>({{"huge_pages", "on"}}))
