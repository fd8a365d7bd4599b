// Where a format is read from: a file (through a buffer) or memory (in place), once from front to back.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/aligned_buffer.hpp"
#include "base/check.hpp"
#include "formats/file_io.hpp"

namespace ladder {

// Bytes read once from front to back, from a file (through a buffer) or from memory (in place).
class Source {
public:
    [[nodiscard]] static Source from_file(const std::string& path,
                                          std::size_t buffer_bytes = default_buffer_bytes) {
        Source source;
        OpenedFile file = open_regular_file(path);
        source.name_ = path;
        source.size_bytes_ = file.size_bytes;
        source.handle_ = std::move(file.handle);
        source.buffer_bytes_ = buffer_bytes;
        return source;
    }
    // The bytes must outlive the source. `name` stands for the file in errors.
    [[nodiscard]] static Source from_bytes(std::span<const std::byte> bytes, std::string name = "<bytes>") {
        Source source;
        source.name_ = std::move(name);
        source.size_bytes_ = bytes.size();
        source.next_ = bytes.data();
        source.available_ = bytes.size();
        return source;
    }

    [[nodiscard]] const std::string& name() const noexcept { return name_; }
    [[nodiscard]] std::uint64_t size_bytes() const noexcept { return size_bytes_; }
    [[nodiscard]] std::uint64_t offset() const noexcept { return offset_; }
    [[nodiscard]] std::uint64_t remaining() const noexcept { return size_bytes_ - offset_; }

    // The next `size` bytes, contiguous, aligned to 4 where every earlier take was a multiple of 4; valid
    // until the next take. The caller has checked `size` against remaining(): a count from a file never sizes
    // an allocation.
    [[nodiscard]] const std::byte* take(std::size_t size) {
        if (size > available_) [[unlikely]] {
            LADDER_CHECK(size <= remaining());
            refill(size);
        }
        const std::byte* taken = next_;
        if (in_memory() && reinterpret_cast<std::uintptr_t>(taken) % alignof(std::uint32_t) != 0)
            [[unlikely]] {
            scratch_.assign(taken, taken + size);
            taken = scratch_.data();
        }
        next_ += size;
        available_ -= size;
        offset_ += size;
        return taken;
    }

private:
    static constexpr std::size_t default_buffer_bytes = std::size_t{1} << 18;

    Source() = default;
    [[nodiscard]] bool in_memory() const noexcept { return handle_.get() < 0; }

    void refill(std::size_t wanted) {
        LADDER_CHECK(!in_memory());
        if (wanted > buffer_.size()) {
            AlignedBuffer larger(std::max(buffer_bytes_, wanted));
            std::copy_n(next_, available_, larger.data());
            buffer_ = std::move(larger);
        } else {
            std::memmove(buffer_.data(), next_, available_);
        }
        next_ = buffer_.data();
        const auto unread = static_cast<std::size_t>(
            std::min<std::uint64_t>(remaining() - available_, buffer_.size() - available_));
        read_exactly(handle_.get(), buffer_.data() + available_, unread, name_, offset_ + available_);
        available_ += unread;
    }

    std::string name_;
    FileHandle handle_;
    std::uint64_t size_bytes_ = 0;
    std::uint64_t offset_ = 0;
    std::size_t buffer_bytes_ = 0;
    AlignedBuffer buffer_;
    std::vector<std::byte> scratch_;
    const std::byte* next_ = nullptr;
    std::size_t available_ = 0;
};

}  // namespace ladder
