// Memory for what is large: cache lines or huge pages aligned, nothing zero-filled.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <memory>
#include <new>
#include <span>

namespace ladder {

// Called with a fresh buffer before anything is read into it; the place to ask for huge pages.
using BufferHook = void (*)(void* start, std::size_t size_bytes);

// Uninitialised bytes: nothing is zero-filled, untouched pages cost nothing. Aligned for cache lines, and for
// huge pages where it is large enough to have some.
class AlignedBuffer {
public:
    AlignedBuffer() = default;
    explicit AlignedBuffer(std::size_t size_bytes, BufferHook hook = nullptr) : size_bytes_(size_bytes) {
        if (size_bytes == 0) {
            return;
        }
        const std::size_t alignment = size_bytes >= huge_page_bytes ? huge_page_bytes : cache_line_bytes;
        if (size_bytes > std::numeric_limits<std::size_t>::max() - alignment) {
            throw std::bad_alloc();
        }
        const std::size_t rounded = (size_bytes + cache_line_bytes - 1) / cache_line_bytes * cache_line_bytes;
        void* memory = nullptr;
        if (::posix_memalign(&memory, alignment, rounded) != 0) {
            throw std::bad_alloc();
        }
        bytes_.reset(static_cast<std::byte*>(memory));
        if (hook != nullptr) {
            hook(memory, rounded);
        }
    }

    [[nodiscard]] static AlignedBuffer copy_of(std::span<const std::byte> bytes) {
        AlignedBuffer buffer(bytes.size());
        std::copy(bytes.begin(), bytes.end(), buffer.data());
        return buffer;
    }

    [[nodiscard]] std::byte* data() noexcept { return bytes_.get(); }
    [[nodiscard]] const std::byte* data() const noexcept { return bytes_.get(); }
    [[nodiscard]] std::size_t size() const noexcept { return size_bytes_; }
    [[nodiscard]] std::span<std::byte> bytes() noexcept { return {bytes_.get(), size_bytes_}; }
    [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return {bytes_.get(), size_bytes_}; }

private:
    static constexpr std::size_t cache_line_bytes = 64;
    static constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;
    struct Free {
        void operator()(std::byte* memory) const noexcept { std::free(memory); }
    };
    std::unique_ptr<std::byte[], Free> bytes_;
    std::size_t size_bytes_ = 0;
};

}  // namespace ladder
