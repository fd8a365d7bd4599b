# Arctic Inference's suffix tree, out of the source archive that `make peers` unpacked.
include(${CMAKE_CURRENT_LIST_DIR}/sources.cmake)
ladder_peer_source(arctic-inference 0.3.0)

if(LADDER_PEER_SOURCE AND NOT TARGET ladder_peer_arctic)
    set(_arctic ${LADDER_PEER_SOURCE}/csrc/suffix_decoding)
    add_library(ladder_peer_arctic STATIC EXCLUDE_FROM_ALL ${_arctic}/suffix_tree.cc)
    target_include_directories(ladder_peer_arctic SYSTEM PUBLIC ${_arctic})
    ladder_peer_compile(ladder_peer_arctic)
endif()

if(TARGET ladder_peer_arctic)
    set(LADDER_LIBRARIES ladder_peer_arctic)
endif()
