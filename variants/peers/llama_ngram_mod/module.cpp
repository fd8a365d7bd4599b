#include "bindings/module.hpp"
#include "peers/llama_ngram_mod/drafter.hpp"
#include "peers/shared/configured.hpp"

LADDER_VARIANT_MODULE(
    llama_ngram_mod,
    ladder::configured<ladder::LlamaNgramMod, ladder::LlamaModSizes{24, 48}>({{"n_match", "24"},
                                                                              {"n_min", "48"}}),
    ladder::configured<ladder::LlamaNgramMod, ladder::LlamaModSizes{16, 48}>({{"n_match", "16"},
                                                                              {"n_min", "48"}}),
    ladder::configured<ladder::LlamaNgramMod, ladder::LlamaModSizes{12, 48}>({{"n_match", "12"},
                                                                              {"n_min", "48"}}),
    ladder::configured<ladder::LlamaNgramMod, ladder::LlamaModSizes{8, 48}>({{"n_match", "8"},
                                                                             {"n_min", "48"}}),
    ladder::configured<ladder::LlamaNgramMod, ladder::LlamaModSizes{6, 48}>({{"n_match", "6"},
                                                                             {"n_min", "48"}}),
    ladder::configured<ladder::LlamaNgramMod, ladder::LlamaModSizes{4, 48}>({{"n_match", "4"},
                                                                             {"n_min", "48"}}),
    ladder::configured<ladder::LlamaNgramMod, ladder::LlamaModSizes{24, 0}>({{"n_match", "24"},
                                                                             {"n_min", "0"}}),
    ladder::configured<ladder::LlamaNgramMod, ladder::LlamaModSizes{16, 0}>({{"n_match", "16"},
                                                                             {"n_min", "0"}}),
    ladder::configured<ladder::LlamaNgramMod, ladder::LlamaModSizes{12, 0}>({{"n_match", "12"},
                                                                             {"n_min", "0"}}),
    ladder::configured<ladder::LlamaNgramMod, ladder::LlamaModSizes{8, 0}>({{"n_match", "8"},
                                                                            {"n_min", "0"}}),
    ladder::configured<ladder::LlamaNgramMod, ladder::LlamaModSizes{6, 0}>({{"n_match", "6"},
                                                                            {"n_min", "0"}}),
    ladder::configured<ladder::LlamaNgramMod, ladder::LlamaModSizes{4, 0}>({{"n_match", "4"},
                                                                            {"n_min", "0"}}))
