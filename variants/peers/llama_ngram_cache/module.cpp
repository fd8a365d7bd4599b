#include "bindings/module.hpp"
#include "peers/llama_ngram_cache/drafter.hpp"

LADDER_VARIANT_MODULE(llama_ngram_cache, ladder::alternative<ladder::LlamaNgramCache>())
