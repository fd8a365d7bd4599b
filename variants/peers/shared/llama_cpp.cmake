# llama.cpp's drafters without a model, out of the source archive that `make peers` unpacked: included by the
# deps.cmake of each variant that is one of them. Sets LADDER_LIBRARIES, or LADDER_SKIP_REASON.
include(${CMAKE_CURRENT_LIST_DIR}/sources.cmake)
ladder_peer_source(llama-cpp-python 0.3.36)

if(LADDER_PEER_SOURCE AND NOT TARGET ladder_peer_llama_cpp)
    set(_llama ${LADDER_PEER_SOURCE}/vendor/llama.cpp)
    add_library(ladder_peer_llama_cpp STATIC EXCLUDE_FROM_ALL
        ${_llama}/common/ngram-cache.cpp
        ${_llama}/common/ngram-map.cpp
        ${_llama}/common/ngram-mod.cpp
        ${_llama}/common/speculative.cpp
        ${CMAKE_CURRENT_LIST_DIR}/llama_cpp_stubs.cpp)
    # SYSTEM: their headers are not held to this project's warnings.
    target_include_directories(ladder_peer_llama_cpp SYSTEM PUBLIC
        ${_llama}/common ${_llama}/include ${_llama}/ggml/include ${_llama}/vendor)
    ladder_peer_compile(ladder_peer_llama_cpp)
    # speculative.cpp also holds the drafters with a model, whose functions live in libllama. They are never
    # called here, so they are left to be looked up when they are, which never happens.
    target_link_options(ladder_peer_llama_cpp INTERFACE
        LINKER:--unresolved-symbols=ignore-all LINKER:-z,lazy)
endif()

if(TARGET ladder_peer_llama_cpp)
    set(LADDER_LIBRARIES ladder_peer_llama_cpp)
endif()
