#include "bindings/module.hpp"
#include "peers/llama_ngram_map_k/drafter.hpp"

LADDER_VARIANT_MODULE(llama_ngram_map_k, ladder::alternative<ladder::LlamaNgramMapK<12>>({{"size_n", "12"}}),
                      ladder::alternative<ladder::LlamaNgramMapK<8>>({{"size_n", "8"}}),
                      ladder::alternative<ladder::LlamaNgramMapK<6>>({{"size_n", "6"}}),
                      ladder::alternative<ladder::LlamaNgramMapK<5>>({{"size_n", "5"}}),
                      ladder::alternative<ladder::LlamaNgramMapK<4>>({{"size_n", "4"}}),
                      ladder::alternative<ladder::LlamaNgramMapK<3>>({{"size_n", "3"}}),
                      ladder::alternative<ladder::LlamaNgramMapK<2>>({{"size_n", "2"}}))
