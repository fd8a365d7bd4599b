// llama.cpp's ngram-simple: the newest place where the last tokens occurred before, found by walking back;
// what followed it is the draft.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "peers/shared/llama_speculative.hpp"

namespace ladder {

struct LlamaNgramSimpleKind {
    using Sizes = LlamaLookupSizes;
    static constexpr std::string_view rule = "llama_ngram_simple";
    static constexpr std::size_t table_bytes = 0;

    static void apply(common_params_speculative& parameters, Sizes sizes) {
        parameters.types = {COMMON_SPECULATIVE_TYPE_NGRAM_SIMPLE};
        sizes.apply(parameters.ngram_simple);
    }
};

using LlamaNgramSimple = LlamaSpeculative<LlamaNgramSimpleKind>;

}  // namespace ladder
