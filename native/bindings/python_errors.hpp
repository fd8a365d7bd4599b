// What every extension module says to Python of bad input.
#pragma once

#include <nanobind/nanobind.h>

#include <exception>
#include <new>

#include "base/check.hpp"

namespace ladder {

// Bad input becomes a ValueError of one line.
inline void translate_input_errors() {
    nanobind::register_exception_translator([](const std::exception_ptr& error, void*) {
        try {
            std::rethrow_exception(error);
        } catch (const InputError& bad_input) {
            PyErr_SetString(PyExc_ValueError, bad_input.what());
        } catch (const std::bad_alloc&) {
            PyErr_SetString(PyExc_MemoryError, "not enough memory; use a smaller corpus");
        }
    });
}

}  // namespace ladder
