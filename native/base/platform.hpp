// The one C++ file with calls that only some systems have. Each has a stated outcome elsewhere.
#pragma once

#if defined(__linux__)
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#endif

#include <cstddef>

namespace ladder {

// Asks the kernel to end this process when its parent ends. False where the system has no such call.
inline bool die_with_parent() {
#if defined(__linux__)
    return prctl(PR_SET_PDEATHSIG, SIGKILL) == 0;
#else
    return false;
#endif
}

// Asks for huge pages under [address, address + bytes). False where the system has no such call or refuses.
inline bool advise_huge_pages([[maybe_unused]] void* address, [[maybe_unused]] std::size_t bytes) {
#if defined(__linux__)
    return madvise(address, bytes, MADV_HUGEPAGE) == 0;
#else
    return false;
#endif
}

// Maps every page of [address, address + bytes), which begins at a page, reading from the file what is not in
// memory. False where the system has no such call or refuses.
inline bool populate_for_reading([[maybe_unused]] const void* address, [[maybe_unused]] std::size_t bytes) {
#if defined(__linux__) && defined(MADV_POPULATE_READ)
    return madvise(const_cast<void*>(address), bytes, MADV_POPULATE_READ) == 0;
#else
    return false;
#endif
}

}  // namespace ladder
