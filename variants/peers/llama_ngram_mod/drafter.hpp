// llama.cpp's ngram-mod: one large table, a hash of the last tokens -> the token that followed them last,
// shared by everything that is generated; a draft follows the table step by step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "peers/shared/llama_speculative.hpp"

namespace ladder {

// `n_match` tokens are hashed; a chain shorter than `n_min` tokens is no draft.
struct LlamaModSizes {
    std::int32_t n_match = 24;
    std::int32_t n_min = 48;
};

struct LlamaNgramModKind {
    using Sizes = LlamaModSizes;
    static constexpr std::string_view rule = "llama_ngram_mod";
    static constexpr std::size_t table_bytes = std::size_t{4} * 1024 * 1024 * sizeof(Token);

    static void apply(common_params_speculative& parameters, Sizes sizes) {
        parameters.types = {COMMON_SPECULATIVE_TYPE_NGRAM_MOD};
        parameters.ngram_mod.n_match = sizes.n_match;
        parameters.ngram_mod.n_min = sizes.n_min;
    }
};

using LlamaNgramMod = LlamaSpeculative<LlamaNgramModKind>;

}  // namespace ladder
