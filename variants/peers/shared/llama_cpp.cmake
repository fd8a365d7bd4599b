# llama.cpp's drafters without a model, out of the source archive that `make peers` unpacked: included by the
# deps.cmake of each variant that is one of them. Sets LADDER_LIBRARIES, or LADDER_SKIP_REASON.
include(${CMAKE_CURRENT_LIST_DIR}/sources.cmake)
ladder_peer_source(llama-cpp-python 0.3.36)

if(LADDER_PEER_SOURCE AND NOT TARGET ladder_peer_llama_cpp)
    set(_llama ${LADDER_PEER_SOURCE}/vendor/llama.cpp)
    add_library(ladder_peer_llama_cpp_objects OBJECT EXCLUDE_FROM_ALL
        ${_llama}/common/ngram-cache.cpp
        ${_llama}/common/ngram-map.cpp
        ${_llama}/common/ngram-mod.cpp
        ${_llama}/common/speculative.cpp
        ${CMAKE_CURRENT_LIST_DIR}/llama_cpp_stubs.cpp)
    set(_absent ${CMAKE_CURRENT_BINARY_DIR}/llama_cpp_absent.cpp)
    add_custom_command(OUTPUT ${_absent}
        COMMAND ${CMAKE_COMMAND} -DNM=${CMAKE_NM} "-DOBJECTS=$<TARGET_OBJECTS:ladder_peer_llama_cpp_objects>"
            -DOUTPUT=${_absent} -P ${CMAKE_CURRENT_LIST_DIR}/absent_functions.cmake
        DEPENDS $<TARGET_OBJECTS:ladder_peer_llama_cpp_objects> ${CMAKE_CURRENT_LIST_DIR}/absent_functions.cmake
        VERBATIM)
    add_library(ladder_peer_llama_cpp STATIC EXCLUDE_FROM_ALL
        $<TARGET_OBJECTS:ladder_peer_llama_cpp_objects> ${_absent})
    foreach(_target ladder_peer_llama_cpp_objects ladder_peer_llama_cpp)
        # SYSTEM: their headers are not held to this project's warnings.
        target_include_directories(${_target} SYSTEM PUBLIC
            ${_llama}/common ${_llama}/include ${_llama}/ggml/include ${_llama}/vendor)
        ladder_peer_compile(${_target})
    endforeach()
endif()

if(TARGET ladder_peer_llama_cpp)
    set(LADDER_LIBRARIES ladder_peer_llama_cpp)
endif()
