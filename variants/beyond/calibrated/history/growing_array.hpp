// An array that grows without moving what it holds, where the system can.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace ladder::calibrated {

// Small, it is copied as any array is. Large, it is pages of its own, which Linux moves by renaming them, and
// which are zeroed one by one as they are touched: no huge pages, whose zeroing would be a pause. (On other
// systems a large one is copied too: a pause of a millisecond a few megabytes.)
template <class T>
    requires std::is_trivially_copyable_v<T>
class GrowingArray {
public:
    GrowingArray() = default;
    GrowingArray(GrowingArray&& other) noexcept { swap(other); }
    GrowingArray& operator=(GrowingArray&& other) noexcept {
        swap(other);
        return *this;
    }
    ~GrowingArray() { release(data_, capacity_); }

    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] T* data() noexcept { return data_; }
    [[nodiscard]] const T* data() const noexcept { return data_; }
    [[nodiscard]] T& operator[](std::size_t i) noexcept { return data_[i]; }
    [[nodiscard]] const T& operator[](std::size_t i) const noexcept { return data_[i]; }
    void push_back(const T& value) {
        if (size_ == capacity_) [[unlikely]] {
            grow();
        }
        data_[size_++] = value;
    }
    // `count` values as they lie in a file, wherever they lie.
    void assign(const std::byte* from, std::size_t count) {
        while (capacity_ < count) {
            grow();
        }
        if (count != 0) {
            std::memcpy(static_cast<void*>(data_), from, count * sizeof(T));
        }
        size_ = count;
    }
    // What has been touched, to the page.
    [[nodiscard]] std::size_t bytes() const noexcept {
        return (size_ * sizeof(T) + page_bytes - 1) / page_bytes * page_bytes;
    }

private:
    void swap(GrowingArray& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        std::swap(capacity_, other.capacity_);
    }

    static constexpr std::size_t page_bytes = 4096;
    static constexpr std::size_t first_bytes = 4096;
    static constexpr std::size_t own_pages_bytes = std::size_t{1} << 18;

    static bool has_own_pages([[maybe_unused]] std::size_t capacity) noexcept {
#if defined(__linux__)
        return capacity * sizeof(T) >= own_pages_bytes;
#else
        return false;
#endif
    }
    void grow() {
        const std::size_t larger = capacity_ == 0 ? first_bytes / sizeof(T) : 2 * capacity_;
#if defined(__linux__)
        if (has_own_pages(capacity_)) {
            void* moved = ::mremap(data_, capacity_ * sizeof(T), larger * sizeof(T), MREMAP_MAYMOVE);
            if (moved == MAP_FAILED) {
                throw std::bad_alloc();
            }
            data_ = static_cast<T*>(moved);
            capacity_ = larger;
            return;
        }
#endif
        T* moved = allocate(larger);
        if (size_ != 0) {
            std::memcpy(moved, data_, size_ * sizeof(T));
        }
        release(data_, capacity_);
        data_ = moved;
        capacity_ = larger;
    }
    static T* allocate(std::size_t capacity) {
        const std::size_t bytes = capacity * sizeof(T);
#if defined(__linux__)
        if (has_own_pages(capacity)) {
            void* pages = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (pages == MAP_FAILED) {
                throw std::bad_alloc();
            }
            ::madvise(pages, bytes, MADV_NOHUGEPAGE);
            return static_cast<T*>(pages);
        }
#endif
        constexpr std::size_t line = 64;
        void* memory = std::aligned_alloc(line, (bytes + line - 1) / line * line);
        if (memory == nullptr) {
            throw std::bad_alloc();
        }
        return static_cast<T*>(memory);
    }
    static void release(T* data, [[maybe_unused]] std::size_t capacity) noexcept {
#if defined(__linux__)
        if (has_own_pages(capacity)) {
            ::munmap(data, capacity * sizeof(T));
            return;
        }
#endif
        std::free(data);
    }

    T* data_ = nullptr;
    std::size_t size_ = 0;
    std::size_t capacity_ = 0;
};

}  // namespace ladder::calibrated
