// Whether a static cache that is read into memory asks for huge pages.
#pragma once

#include <cstddef>

#include "base/aligned_buffer.hpp"
#include "base/platform.hpp"

namespace ladder {

enum class HugePages : bool { off, on };

// For read_whole_file: called before the buffer is touched.
inline BufferHook huge_page_hook(HugePages wanted) {
    if (wanted == HugePages::off) {
        return nullptr;
    }
    return [](void* start, std::size_t size_bytes) { advise_huge_pages(start, size_bytes); };
}

}  // namespace ladder
