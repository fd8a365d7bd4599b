#include "common/module.hpp"
#include "sorted_vectors/drafter.hpp"

namespace {

template <class Hash, std::size_t segment_bytes>
ladder::Alternative of(const char* hash) {
    return ladder::alternative<ladder::SortedVectors<Hash, segment_bytes>>(
        {{"hash", hash}, {"segment_bytes", std::to_string(segment_bytes)}});
}

using ladder::AvalanchingNgramHash;
using ladder::XorNgramHash;

}  // namespace

LADDER_VARIANT_MODULE(sorted_vectors, of<AvalanchingNgramHash, 4096>("avalanching"),
                      of<AvalanchingNgramHash, 1024>("avalanching"),
                      of<AvalanchingNgramHash, 65536>("avalanching"), of<XorNgramHash, 4096>("xor"),
                      of<XorNgramHash, 1024>("xor"), of<XorNgramHash, 65536>("xor"))
