// The few functions of llama.cpp's library that its drafters without a model call: logging is silent, time
// stands still, and what cannot happen ends the process.
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "common.h"
#include "log.h"

int common_log_get_verbosity_thold(void) {
    return -1;
}  // below every level: nothing is ever formatted

common_log* common_log_main() {
    return nullptr;
}

void common_log_add(common_log*, ggml_log_level, const char*, ...) {}

// Measures its caller in upstream; here the replay driver owns the clock.
common_time_meas::common_time_meas(std::int64_t& t_acc, bool) : t_start_us(0), t_acc(t_acc) {}
common_time_meas::~common_time_meas() = default;

std::string string_format(const char* format, ...) {
    char text[256];
    std::va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return text;
}

extern "C" {

std::int64_t ggml_time_ms(void) {
    return 0;
}

void ggml_abort(const char* file, int line, const char* format, ...) {
    std::fprintf(stderr, "llama.cpp: %s:%d: ", file, line);
    std::va_list arguments;
    va_start(arguments, format);
    std::vfprintf(stderr, format, arguments);
    va_end(arguments);
    std::fputc('\n', stderr);
    std::abort();
}

}  // extern "C"
