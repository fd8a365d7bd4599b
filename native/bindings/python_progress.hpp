// Progress of native work told to Python, and Ctrl-C heard.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>

#include "counting/progress.hpp"

namespace ladder {

// Takes the GIL for a moment: a pending Ctrl-C or an exception of the callback ends the work. `callback` is
// None or callable(phase, done, total) and must outlive the result.
[[nodiscard]] inline Progress python_progress(const nanobind::object& callback) {
    return [&callback](const char* phase, std::uint64_t done, std::uint64_t total) {
        const nanobind::gil_scoped_acquire gil;
        if (PyErr_CheckSignals() != 0) {
            throw nanobind::python_error();
        }
        if (!callback.is_none()) {
            callback(phase, done, total);
        }
    };
}

}  // namespace ladder
