# Writes a source file with a stand-in for every function of llama.cpp's library that its drafters' objects want
# and that is not compiled here: cmake -DNM= -DOBJECTS= -DOUTPUT= -P absent_functions.cmake
#
# speculative.cpp also holds the drafters that have a model. They are never made, but Python resolves every
# function of a module when it loads it.
set(_function "[A-Za-z_][A-Za-z0-9_]*(llama|common_|gguf_|ggml_)[A-Za-z0-9_]*|(llama|common|gguf|ggml)_[A-Za-z0-9_]+|_Z[0-9]+string_[A-Za-z0-9_]+")
foreach(_kind undefined-only defined-only)
    # Without the objects' own names, which are paths.
    execute_process(COMMAND ${NM} --${_kind} -j ${OBJECTS} OUTPUT_VARIABLE _listed COMMAND_ERROR_IS_FATAL ANY)
    string(REGEX REPLACE "[^\n]*\\.o:\n" "" _listed "${_listed}")
    string(REGEX MATCHALL "${_function}" _${_kind} "${_listed}")
endforeach()
list(REMOVE_DUPLICATES _undefined-only)
list(REMOVE_ITEM _undefined-only ${_defined-only})
set(_text "// Made by absent_functions.cmake.\n#include <cstdlib>\n\nextern \"C\" {\n")
foreach(_name IN LISTS _undefined-only)
    string(APPEND _text "void ${_name}() { std::abort(); }\n")
endforeach()
file(WRITE ${OUTPUT} "${_text}}\n")
