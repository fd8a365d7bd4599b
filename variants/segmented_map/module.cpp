#include "common/module.hpp"
#include "segmented_map/drafter.hpp"

using ladder::alternative;
using ladder::AvalanchingNgramHash;
using ladder::SegmentedMapDrafter;
using ladder::XorNgramHash;

LADDER_VARIANT_MODULE(
    segmented_map,
    alternative<SegmentedMapDrafter<AvalanchingNgramHash, 4096>>({{"hash", "avalanching"},
                                                                  {"segment_bytes", "4096"}}),
    alternative<SegmentedMapDrafter<XorNgramHash, 4096>>({{"hash", "xor"}, {"segment_bytes", "4096"}}),
    alternative<SegmentedMapDrafter<AvalanchingNgramHash, 1024>>({{"hash", "avalanching"},
                                                                  {"segment_bytes", "1024"}}),
    alternative<SegmentedMapDrafter<AvalanchingNgramHash, 65536>>({{"hash", "avalanching"},
                                                                   {"segment_bytes", "65536"}}))
