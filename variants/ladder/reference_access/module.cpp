#include "bindings/module.hpp"
#include "ladder/reference_access/drafter.hpp"

LADDER_VARIANT_MODULE(
    reference_access, ladder::alternative<ladder::ReferenceAccess<ladder::XorNgramHash>>({{"hash", "xor"}}),
    ladder::alternative<ladder::ReferenceAccess<ladder::AvalanchingNgramHash>>({{"hash", "avalanching"}}))
