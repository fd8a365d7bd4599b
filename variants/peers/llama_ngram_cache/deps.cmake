include(${CMAKE_CURRENT_LIST_DIR}/../shared/llama_cpp.cmake)
