// An array that grows without ever moving or zeroing much at once.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace ladder::calibrated {

// Segments of 16 KB, zeroed as they come: the longest pause of growth is one of them and, seldom, a copy of
// the directory. Below the size at which an allocator asks the kernel for pages of its own, and far below a huge page,
// whose zeroing alone would be a pause.
template <class T>
class SegmentedArray {
public:
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] T& operator[](std::size_t i) noexcept { return segments_[i / per_segment][i % per_segment]; }
    [[nodiscard]] const T& operator[](std::size_t i) const noexcept {
        return segments_[i / per_segment][i % per_segment];
    }
    T& push_back(const T& value) {
        if (size_ == segments_.size() * per_segment) {
            segments_.push_back(std::make_unique<T[]>(per_segment));
        }
        T& place = (*this)[size_++];
        place = value;
        return place;
    }
    [[nodiscard]] std::size_t bytes() const noexcept {
        return segments_.size() * per_segment * sizeof(T) + segments_.capacity() * sizeof(segments_[0]);
    }

private:
    static constexpr std::size_t per_segment = (std::size_t{1} << 14) / sizeof(T);
    std::vector<std::unique_ptr<T[]>> segments_;
    std::size_t size_ = 0;
};

}  // namespace ladder::calibrated
