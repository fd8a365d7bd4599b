#include "bindings/module.hpp"
#include "ladder/sorted_vectors/drafter.hpp"

LADDER_VARIANT_MODULE(
    sorted_vectors,
    ladder::alternative<ladder::SortedVectors<ladder::AvalanchingNgramHash, 4096>>(
        {{"hash", "avalanching"}, {"segment_bytes", "4096"}}),
    ladder::alternative<ladder::SortedVectors<ladder::AvalanchingNgramHash, 1024>>(
        {{"hash", "avalanching"}, {"segment_bytes", "1024"}}),
    ladder::alternative<ladder::SortedVectors<ladder::AvalanchingNgramHash, 65536>>(
        {{"hash", "avalanching"}, {"segment_bytes", "65536"}}),
    ladder::alternative<ladder::SortedVectors<ladder::XorNgramHash, 4096>>({{"hash", "xor"},
                                                                            {"segment_bytes", "4096"}}),
    ladder::alternative<ladder::SortedVectors<ladder::XorNgramHash, 1024>>({{"hash", "xor"},
                                                                            {"segment_bytes", "1024"}}),
    ladder::alternative<ladder::SortedVectors<ladder::XorNgramHash, 65536>>({{"hash", "xor"},
                                                                             {"segment_bytes", "65536"}}))
