#include "bindings/module.hpp"
#include "peers/sglang_trie/drafter.hpp"
#include "peers/shared/configured.hpp"

LADDER_VARIANT_MODULE(
    sglang_trie,
    ladder::configured<ladder::SglangTrie, ladder::SglangBreadth{10}>({{"max_bfs_breadth", "10"}}),
    ladder::configured<ladder::SglangTrie, ladder::SglangBreadth{1}>({{"max_bfs_breadth", "1"}}),
    ladder::configured<ladder::SglangTrie, ladder::SglangBreadth{2}>({{"max_bfs_breadth", "2"}}),
    ladder::configured<ladder::SglangTrie, ladder::SglangBreadth{4}>({{"max_bfs_breadth", "4"}}),
    ladder::configured<ladder::SglangTrie, ladder::SglangBreadth{16}>({{"max_bfs_breadth", "16"}}))
