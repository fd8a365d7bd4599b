// llama.cpp's ngram-map-k: the same look-up through a hash of n-gram positions, with the length that was
// accepted last time.
#pragma once

#include <ngram-map.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "peers/shared/llama_speculative.hpp"

namespace ladder {

struct LlamaNgramMapKKind {
    using Sizes = LlamaLookupSizes;
    static constexpr std::string_view rule = "llama_ngram_map_k";
    static constexpr std::size_t table_bytes = COMMON_NGRAM_HASH_MAP_SIZE * sizeof(std::uint32_t);

    static void apply(common_params_speculative& parameters, Sizes sizes) {
        parameters.types = {COMMON_SPECULATIVE_TYPE_NGRAM_MAP_K};
        sizes.apply(parameters.ngram_map_k);
    }
};

using LlamaNgramMapK = LlamaSpeculative<LlamaNgramMapKKind>;

}  // namespace ladder
