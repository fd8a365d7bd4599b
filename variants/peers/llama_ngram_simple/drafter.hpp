// llama.cpp's ngram-simple: the newest place where the last tokens occurred before, found by walking back;
// what followed it is the draft.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "peers/shared/llama_speculative.hpp"

namespace ladder {

template <std::uint16_t size_n, std::uint16_t size_m>
struct LlamaNgramSimpleSettings {
    static constexpr std::string_view rule = "llama_ngram_simple";
    static constexpr std::size_t table_bytes = 0;

    static void apply(common_params_speculative& parameters) {
        parameters.types = {COMMON_SPECULATIVE_TYPE_NGRAM_SIMPLE};
        set_sizes<size_n, size_m>(parameters.ngram_simple);
    }
};

template <std::uint16_t size_n, std::uint16_t size_m = 48>
using LlamaNgramSimple = LlamaSpeculative<LlamaNgramSimpleSettings<size_n, size_m>>;

}  // namespace ladder
