// An array that grows without ever moving what it holds, or zeroing much of it at once.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace ladder::calibrated {

// Segments of one page, one page, two, four, ...: nothing is copied when it grows. Large segments come from the
// kernel, page by page as they are touched, and ask not to get huge pages, whose zeroing would be a pause of its own.
template <class T>
    requires std::is_trivially_destructible_v<T>
class SegmentedArray {
public:
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] T& operator[](std::size_t i) noexcept { return *address(i); }
    [[nodiscard]] const T& operator[](std::size_t i) const noexcept { return *address(i); }
    T& push_back(const T& value) {
        const std::size_t place = size_ + first;
        auto& segment = segments_[segment_of(place)];
        if (segment == nullptr) [[unlikely]] {
            segment.reset(allocate(segment_of(place) == 0 ? first : std::bit_floor(place)));
        }
        T* added = address(size_++);
        return *new (added) T(value);
    }
    // What has been touched, to the segment of a page; a large segment's rest is only an address.
    [[nodiscard]] std::size_t bytes() const noexcept { return (size_ + first - 1) / first * page_bytes; }

private:
    static constexpr std::size_t page_bytes = 4096;
    static constexpr std::size_t first = page_bytes / sizeof(T);
    static_assert(std::has_single_bit(first));
    static constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;

    struct Free {
        void operator()(T* memory) const noexcept { std::free(memory); }
    };

    // Places are counted from `first` up, so that a segment is what a leading bit says.
    static std::size_t segment_of(std::size_t place) noexcept {
        return static_cast<std::size_t>(std::bit_width(place) - std::bit_width(first));
    }
    [[nodiscard]] T* address(std::size_t i) const noexcept {
        const std::size_t place = i + first;
        return segments_[segment_of(place)].get() + (place - std::bit_floor(place));
    }
    static T* allocate(std::size_t count) {
        const std::size_t bytes = count * sizeof(T);
        void* memory = std::aligned_alloc(page_bytes, bytes);
        if (memory == nullptr) {
            throw std::bad_alloc();
        }
#if defined(__linux__)
        if (bytes >= huge_page_bytes) {
            ::madvise(memory, bytes, MADV_NOHUGEPAGE);
        }
#endif
        return static_cast<T*>(memory);
    }

    std::array<std::unique_ptr<T, Free>, 40> segments_;
    std::size_t size_ = 0;
};

}  // namespace ladder::calibrated
