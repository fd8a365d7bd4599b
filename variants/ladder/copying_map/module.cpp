#include "bindings/module.hpp"
#include "ladder/copying_map/drafter.hpp"

LADDER_VARIANT_MODULE(
    copying_map, ladder::alternative<ladder::CopyingMap<ladder::XorNgramHash>>({{"hash", "xor"}}),
    ladder::alternative<ladder::CopyingMap<ladder::AvalanchingNgramHash>>({{"hash", "avalanching"}}))
