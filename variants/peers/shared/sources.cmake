# Where a peer's source lies, and how it is compiled.
include_guard(GLOBAL)

# LADDER_PEERS: the folder that variants/peers/fetch.py fills, by default in the cache folder.
if(NOT DEFINED LADDER_PEERS)
    if(DEFINED ENV{LADDER_PEERS})
        set(LADDER_PEERS $ENV{LADDER_PEERS})
    elseif(DEFINED ENV{LADDER_CACHE_DIR})
        set(LADDER_PEERS $ENV{LADDER_CACHE_DIR}/peers)
    else()
        set(LADDER_PEERS $ENV{HOME}/.cache/draft-ladder/peers)
    endif()
endif()

# Sets LADDER_PEER_SOURCE to the unpacked archive, or LADDER_SKIP_REASON to why there is none.
macro(ladder_peer_source package version)
    set(LADDER_PEER_SOURCE "")
    if(IS_DIRECTORY ${LADDER_PEERS}/${package}-${version})
        set(LADDER_PEER_SOURCE ${LADDER_PEERS}/${package}-${version})
    else()
        set(LADDER_SKIP_REASON "the source of ${package} ${version} is not there; `make peers` fetches it")
    endif()
endmacro()

# The same optimisation and machine as the variants', without their warnings: it is not our code.
function(ladder_peer_compile target)
    set_target_properties(${target} PROPERTIES
        POSITION_INDEPENDENT_CODE ON CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON CXX_EXTENSIONS OFF
        CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
    target_compile_options(${target} PRIVATE -w)
    if(LADDER_MARCH)
        target_compile_options(${target} PRIVATE -march=${LADDER_MARCH})
    endif()
endfunction()
