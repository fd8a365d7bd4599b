// Regular files opened and read whole, with errors that name what they are instead. POSIX only (Linux and
// macOS).
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "base/aligned_buffer.hpp"
#include "base/check.hpp"

namespace ladder {

// An open file descriptor, closed at the end of its life.
class FileHandle {
public:
    FileHandle() = default;
    explicit FileHandle(int descriptor) noexcept : descriptor_(descriptor) {}
    FileHandle(FileHandle&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
    FileHandle& operator=(FileHandle&& other) noexcept {
        std::swap(descriptor_, other.descriptor_);
        return *this;
    }
    ~FileHandle() { reset(); }

    [[nodiscard]] int get() const noexcept { return descriptor_; }
    void reset() noexcept {
        if (descriptor_ >= 0) {
            ::close(std::exchange(descriptor_, -1));
        }
    }

private:
    int descriptor_ = -1;
};

// The system's words for an errno value.
[[nodiscard]] inline std::string system_words(int error) {
    return std::strerror(error);
}

struct OpenedFile {
    FileHandle handle;
    std::uint64_t size_bytes = 0;
};

// Opens a regular file for reading. Errors name what it is instead: a folder, a device, missing, not
// readable.
[[nodiscard]] inline OpenedFile open_regular_file(const std::string& path) {
    // Opening a pipe would block before fstat could tell what it is.
    FileHandle handle(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (handle.get() < 0) {
        throw InputError(path, 0, "cannot be opened: " + system_words(errno),
                         "check the path and its permissions");
    }
    struct stat status{};
    if (::fstat(handle.get(), &status) != 0) {
        throw InputError(path, 0, "cannot be examined: " + system_words(errno), "check the file system");
    }
    if (S_ISDIR(status.st_mode)) {
        throw InputError(path, 0, "is a folder", "give a file");
    }
    if (!S_ISREG(status.st_mode)) {
        throw InputError(path, 0, "is a device or pipe, not a regular file", "give a regular file");
    }
    // The kernel's own files (/proc) call themselves regular and empty, and are neither.
    char probe = 0;
    if (status.st_size == 0 && ::pread(handle.get(), &probe, 1, 0) != 0) {
        throw InputError(path, 0, "names no size but is not empty", "give a regular file");
    }
    return {std::move(handle), static_cast<std::uint64_t>(status.st_size)};
}

// Reads exactly `size` bytes at the current position of the file, which is `offset`.
inline void read_exactly(int descriptor, std::byte* into, std::size_t size, const std::string& path,
                         std::uint64_t offset) {
    constexpr std::size_t max_per_call = std::size_t{1} << 30;  // Linux and macOS both stop below 2 GiB
    while (size > 0) {
        const ::ssize_t got = ::read(descriptor, into, std::min(size, max_per_call));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            throw InputError(path, offset, "cannot be read: " + system_words(errno), "check the disk");
        }
        if (got == 0) {
            throw InputError(path, offset, "the file became shorter while it was read",
                             "let nothing write to it");
        }
        into += got;
        size -= static_cast<std::size_t>(got);
        offset += static_cast<std::uint64_t>(got);
    }
}

// The whole file in one buffer.
[[nodiscard]] inline AlignedBuffer read_whole_file(const std::string& path, BufferHook hook = nullptr) {
    const OpenedFile file = open_regular_file(path);
    if (file.size_bytes > std::numeric_limits<std::size_t>::max() / 2) {
        throw InputError(path, 0, "is too large for this machine's memory", "use a smaller file");
    }
    AlignedBuffer buffer(static_cast<std::size_t>(file.size_bytes), hook);
    read_exactly(file.handle.get(), buffer.data(), buffer.size(), path, 0);
    return buffer;
}

}  // namespace ladder
