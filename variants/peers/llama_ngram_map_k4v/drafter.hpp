// llama.cpp's ngram-map-k4v: as ngram-map-k, with up to four counted continuations of each n-gram; a draft is
// made only where one prevails.
#pragma once

#include <ngram-map.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "peers/shared/llama_speculative.hpp"

namespace ladder {

struct LlamaNgramMapK4vKind {
    using Sizes = LlamaLookupSizes;
    static constexpr std::string_view rule = "llama_ngram_map_k4v";
    static constexpr std::size_t table_bytes = COMMON_NGRAM_HASH_MAP_SIZE * sizeof(std::uint32_t);

    static void apply(common_params_speculative& parameters, Sizes sizes) {
        parameters.types = {COMMON_SPECULATIVE_TYPE_NGRAM_MAP_K4V};
        sizes.apply(parameters.ngram_map_k4v);
    }
};

using LlamaNgramMapK4v = LlamaSpeculative<LlamaNgramMapK4vKind>;

}  // namespace ladder
