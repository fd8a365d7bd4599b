#include "bindings/module.hpp"
#include "peers/llama_ngram_simple/drafter.hpp"

LADDER_VARIANT_MODULE(llama_ngram_simple,
                      ladder::alternative<ladder::LlamaNgramSimple<12>>({{"size_n", "12"}}),
                      ladder::alternative<ladder::LlamaNgramSimple<8>>({{"size_n", "8"}}),
                      ladder::alternative<ladder::LlamaNgramSimple<6>>({{"size_n", "6"}}),
                      ladder::alternative<ladder::LlamaNgramSimple<5>>({{"size_n", "5"}}),
                      ladder::alternative<ladder::LlamaNgramSimple<4>>({{"size_n", "4"}}),
                      ladder::alternative<ladder::LlamaNgramSimple<3>>({{"size_n", "3"}}),
                      ladder::alternative<ladder::LlamaNgramSimple<2>>({{"size_n", "2"}}))
