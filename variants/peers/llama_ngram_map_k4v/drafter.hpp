// llama.cpp's ngram-map-k4v: as ngram-map-k, with up to four counted continuations of each n-gram; a draft is
// made only where one prevails.
#pragma once

#include <ngram-map.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "peers/shared/llama_speculative.hpp"

namespace ladder {

template <std::uint16_t size_n, std::uint16_t size_m>
struct LlamaNgramMapK4vSettings {
    static constexpr std::string_view rule = "llama_ngram_map_k4v";
    static constexpr std::size_t table_bytes = COMMON_NGRAM_HASH_MAP_SIZE * sizeof(std::uint32_t);

    static void apply(common_params_speculative& parameters) {
        parameters.types = {COMMON_SPECULATIVE_TYPE_NGRAM_MAP_K4V};
        set_sizes<size_n, size_m>(parameters.ngram_map_k4v);
    }
};

template <std::uint16_t size_n, std::uint16_t size_m = 48>
using LlamaNgramMapK4v = LlamaSpeculative<LlamaNgramMapK4vSettings<size_n, size_m>>;

}  // namespace ladder
