#include "bindings/module.hpp"
#include "ablations/dense_map/drafter.hpp"

LADDER_VARIANT_MODULE(
    dense_map,
    ladder::alternative<ladder::DenseMapDrafter<ladder::AvalanchingNgramHash>>({{"hash", "avalanching"}}),
    ladder::alternative<ladder::DenseMapDrafter<ladder::XorNgramHash>>({{"hash", "xor"}}))
