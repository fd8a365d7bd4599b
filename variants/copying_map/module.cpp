#include "copying_map/drafter.hpp"
#include "common/module.hpp"

LADDER_VARIANT_MODULE(copying_map, ladder::CopyingMap)
