#include "bindings/module.hpp"
#include "peers/llama_ngram_map_k4v/drafter.hpp"

LADDER_VARIANT_MODULE(llama_ngram_map_k4v,
                      ladder::alternative<ladder::LlamaNgramMapK4v<12>>({{"size_n", "12"}}),
                      ladder::alternative<ladder::LlamaNgramMapK4v<8>>({{"size_n", "8"}}),
                      ladder::alternative<ladder::LlamaNgramMapK4v<6>>({{"size_n", "6"}}),
                      ladder::alternative<ladder::LlamaNgramMapK4v<5>>({{"size_n", "5"}}),
                      ladder::alternative<ladder::LlamaNgramMapK4v<4>>({{"size_n", "4"}}),
                      ladder::alternative<ladder::LlamaNgramMapK4v<3>>({{"size_n", "3"}}),
                      ladder::alternative<ladder::LlamaNgramMapK4v<2>>({{"size_n", "2"}}))
