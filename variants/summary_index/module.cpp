#include "summary_index/drafter.hpp"
#include "common/module.hpp"

LADDER_VARIANT_MODULE(summary_index, ladder::SummaryIndex)
