#include "common/module.hpp"
#include "sorted_vectors/drafter.hpp"

using ladder::alternative;
using ladder::AvalanchingNgramHash;
using ladder::SortedVectors;
using ladder::XorNgramHash;

LADDER_VARIANT_MODULE(sorted_vectors,
                      alternative<SortedVectors<AvalanchingNgramHash, 4096>>({{"hash", "avalanching"},
                                                                              {"segment_bytes", "4096"}}),
                      alternative<SortedVectors<XorNgramHash, 4096>>({{"hash", "xor"},
                                                                      {"segment_bytes", "4096"}}),
                      alternative<SortedVectors<AvalanchingNgramHash, 1024>>({{"hash", "avalanching"},
                                                                              {"segment_bytes", "1024"}}),
                      alternative<SortedVectors<AvalanchingNgramHash, 65536>>({{"hash", "avalanching"},
                                                                               {"segment_bytes", "65536"}}))
