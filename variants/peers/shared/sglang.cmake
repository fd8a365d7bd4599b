# SGLang's n-gram trie, out of the source archive that `make peers` unpacked: its C++ without torch around it.
include(${CMAKE_CURRENT_LIST_DIR}/sources.cmake)
ladder_peer_source(sglang 0.5.10.post1)

if(LADDER_PEER_SOURCE AND NOT TARGET ladder_peer_sglang)
    set(_sglang ${LADDER_PEER_SOURCE}/sglang/jit_kernel/csrc/ngram_corpus)
    add_library(ladder_peer_sglang STATIC EXCLUDE_FROM_ALL
        ${_sglang}/ngram.cpp ${_sglang}/result.cpp ${_sglang}/trie.cpp)
    target_include_directories(ladder_peer_sglang SYSTEM PUBLIC ${_sglang})
    # Upstream includes what it throws by way of headers that not every standard library has it in.
    target_compile_options(ladder_peer_sglang PRIVATE -include stdexcept)
    ladder_peer_compile(ladder_peer_sglang)
endif()

if(TARGET ladder_peer_sglang)
    set(LADDER_LIBRARIES ladder_peer_sglang)
endif()
