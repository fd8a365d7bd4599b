// Errors with a place and a remedy, and a check that release builds keep.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace ladder {

// Bad input. `what()` is one line: "<file>: byte <offset>: <problem>; <remedy>".
class InputError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
    InputError(const std::string& file, std::uint64_t offset, const std::string& problem,
               const std::string& remedy)
        : std::runtime_error(file + ": byte " + std::to_string(offset) + ": " + problem + "; " + remedy) {}
};

// A broken promise inside the project itself: a bug, never bad input.
class InternalError : public std::logic_error {
public:
    using std::logic_error::logic_error;
};

[[noreturn]] inline void check_failed(const char* condition, const char* file, int line) {
    throw InternalError(std::string("internal check failed: ") + condition + " at " + file + ":" +
                        std::to_string(line));
}

}  // namespace ladder

// Unlike assert() this stays in release builds: it guards data, and data is what release builds work on.
#define LADDER_CHECK(condition)                                     \
    do {                                                            \
        if (!(condition)) [[unlikely]] {                            \
            ::ladder::check_failed(#condition, __FILE__, __LINE__); \
        }                                                           \
    } while (false)
