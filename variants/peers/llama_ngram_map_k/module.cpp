#include "bindings/module.hpp"
#include "peers/llama_ngram_map_k/drafter.hpp"
#include "peers/shared/configured.hpp"

LADDER_VARIANT_MODULE(
    llama_ngram_map_k,
    ladder::configured<ladder::LlamaNgramMapK, ladder::LlamaLookupSizes{12, 48}>({{"size_n", "12"}}),
    ladder::configured<ladder::LlamaNgramMapK, ladder::LlamaLookupSizes{8, 48}>({{"size_n", "8"}}),
    ladder::configured<ladder::LlamaNgramMapK, ladder::LlamaLookupSizes{6, 48}>({{"size_n", "6"}}),
    ladder::configured<ladder::LlamaNgramMapK, ladder::LlamaLookupSizes{5, 48}>({{"size_n", "5"}}),
    ladder::configured<ladder::LlamaNgramMapK, ladder::LlamaLookupSizes{4, 48}>({{"size_n", "4"}}),
    ladder::configured<ladder::LlamaNgramMapK, ladder::LlamaLookupSizes{3, 48}>({{"size_n", "3"}}),
    ladder::configured<ladder::LlamaNgramMapK, ladder::LlamaLookupSizes{2, 48}>({{"size_n", "2"}}))
