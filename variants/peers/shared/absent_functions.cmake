# Writes a source file with a stand-in for every function of llama.cpp's library that its drafters' objects want
# and that is not compiled here: cmake -DNM= -DOBJECTS= -DOUTPUT= -P absent_functions.cmake
#
# speculative.cpp also holds the drafters that have a model. They are never made, but Python resolves every
# function of a module when it loads it. Weak, so that what is compiled here goes before its stand-in.
execute_process(COMMAND ${NM} -u ${OBJECTS} OUTPUT_VARIABLE _listed COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "[A-Za-z_][A-Za-z0-9_]*(llama|common_|gguf_|ggml_)[A-Za-z0-9_]*|(llama|common|gguf|ggml)_[A-Za-z0-9_]+"
    _names "${_listed}")
list(REMOVE_DUPLICATES _names)
# Paths of the objects are in the listing too; no function of the library is named after them.
list(FILTER _names EXCLUDE REGEX "^(ladder_peer|llama_cpp)")
set(_text "// Made by absent_functions.cmake.\n#include <cstdlib>\n\nextern \"C\" {\n")
foreach(_name IN LISTS _names)
    string(APPEND _text "__attribute__((weak)) void ${_name}() { std::abort(); }\n")
endforeach()
file(WRITE ${OUTPUT} "${_text}}\n")
