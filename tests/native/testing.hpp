// The least that a test program needs: named tests, one line each on stdout, every failed check on stderr.
#pragma once

#include <cstdio>
#include <exception>

namespace testing {

inline int failed_checks = 0;
inline int failed_tests = 0;

inline void check(bool passed, const char* text, const char* file, int line) {
    if (!passed) {
        ++failed_checks;
        std::fprintf(stderr, "%s:%d: not true: %s\n", file, line, text);
    }
}

template <class Body>
void run(const char* name, Body body) {
    failed_checks = 0;
    try {
        body();
    } catch (const std::exception& error) {
        ++failed_checks;
        std::fprintf(stderr, "%s: threw: %s\n", name, error.what());
    }
    failed_tests += failed_checks != 0;
    std::printf("%s %s\n", failed_checks == 0 ? "ok" : "FAILED", name);
    std::fflush(stdout);
}

// The exit code of main().
inline int summary() {
    return failed_tests == 0 ? 0 : 1;
}

}  // namespace testing

#define CHECK(condition) ::testing::check(static_cast<bool>(condition), #condition, __FILE__, __LINE__)
