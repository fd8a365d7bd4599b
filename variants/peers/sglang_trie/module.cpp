#include "bindings/module.hpp"
#include "peers/sglang_trie/drafter.hpp"

LADDER_VARIANT_MODULE(sglang_trie, ladder::alternative<ladder::SglangTrie<10>>({{"max_bfs_breadth", "10"}}),
                      ladder::alternative<ladder::SglangTrie<1>>({{"max_bfs_breadth", "1"}}),
                      ladder::alternative<ladder::SglangTrie<2>>({{"max_bfs_breadth", "2"}}),
                      ladder::alternative<ladder::SglangTrie<4>>({{"max_bfs_breadth", "4"}}),
                      ladder::alternative<ladder::SglangTrie<16>>({{"max_bfs_breadth", "16"}}))
