// llama.cpp's ngram-map-k: the same look-up through a hash of n-gram positions, with the length that was
// accepted last time.
#pragma once

#include <ngram-map.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "peers/shared/llama_speculative.hpp"

namespace ladder {

template <std::uint16_t size_n, std::uint16_t size_m>
struct LlamaNgramMapKSettings {
    static constexpr std::string_view rule = "llama_ngram_map_k";
    static constexpr std::size_t table_bytes = COMMON_NGRAM_HASH_MAP_SIZE * sizeof(std::uint32_t);

    static void apply(common_params_speculative& parameters) {
        parameters.types = {COMMON_SPECULATIVE_TYPE_NGRAM_MAP_K};
        set_sizes<size_n, size_m>(parameters.ngram_map_k);
    }
};

template <std::uint16_t size_n, std::uint16_t size_m = 48>
using LlamaNgramMapK = LlamaSpeculative<LlamaNgramMapKSettings<size_n, size_m>>;

}  // namespace ladder
