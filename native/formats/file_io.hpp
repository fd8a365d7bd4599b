// Files as the formats need them: a sequential source with offsets, one read into one buffer, and atomic
// writing. POSIX only (Linux and macOS).
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <utility>
#include <vector>

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

// Where a format is written to: a file or memory.
class Sink {
public:
    Sink() = default;
    Sink(const Sink&) = delete;
    Sink& operator=(const Sink&) = delete;
    virtual ~Sink() = default;
    virtual void write(std::span<const std::byte> bytes) = 0;
    // Replaces bytes already written: a header is known only at the end.
    virtual void patch(std::uint64_t offset, std::span<const std::byte> bytes) = 0;
    [[nodiscard]] virtual std::uint64_t offset() const noexcept = 0;
};

class MemorySink final : public Sink {
public:
    void write(std::span<const std::byte> bytes) override {
        bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    }
    void patch(std::uint64_t offset, std::span<const std::byte> bytes) override {
        LADDER_CHECK(offset + bytes.size() <= bytes_.size());
        std::copy(bytes.begin(), bytes.end(), bytes_.begin() + static_cast<std::ptrdiff_t>(offset));
    }
    [[nodiscard]] std::uint64_t offset() const noexcept override { return bytes_.size(); }
    [[nodiscard]] std::vector<std::byte> take() noexcept { return std::move(bytes_); }

private:
    std::vector<std::byte> bytes_;
};

// Writes beside the target and moves into place on commit(), so that no reader ever sees half a file. Without
// commit() nothing is left behind.
class AtomicFile final : public Sink {
public:
    explicit AtomicFile(std::string path) : path_(std::move(path)) {
        // The name says whose it is, so that what a killed process left can be told from a file being
        // written.
        constexpr int suffix_length = 4;
        const std::size_t name_start = path_.rfind('/') + 1;  // npos + 1 is 0
        temporary_ = path_.substr(0, name_start) + "." + path_.substr(name_start) + "." +
                     std::to_string(::getpid()) + ".XXXXXX.tmp";
        handle_ = FileHandle(::mkstemps(temporary_.data(), suffix_length));
        if (handle_.get() < 0) {
            throw InputError(path_, 0, "cannot be created: " + system_words(errno),
                             "check the folder, its permissions and free space");
        }
        // mkstemp makes the file private; what others may read is the user's umask to say.
        const ::mode_t mask = ::umask(0);
        ::umask(mask);
        ::fchmod(handle_.get(), 0666 & ~mask);
        buffer_.reserve(buffer_bytes);
    }
    ~AtomicFile() override {
        if (handle_.get() >= 0) {
            ::unlink(temporary_.c_str());
        }
    }

    void write(std::span<const std::byte> bytes) override {
        if (buffer_.size() + bytes.size() > buffer_bytes) {
            flush();
            if (bytes.size() >= buffer_bytes) {
                write_out(bytes);
                return;
            }
        }
        buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
    }

    void patch(std::uint64_t offset, std::span<const std::byte> bytes) override {
        flush();
        LADDER_CHECK(offset + bytes.size() <= written_bytes_);
        seek(offset);
        const std::uint64_t end = written_bytes_;
        write_out(bytes);
        written_bytes_ = end;
        seek(end);
    }

    [[nodiscard]] std::uint64_t offset() const noexcept override { return written_bytes_ + buffer_.size(); }

    void commit() {
        flush();
        if (::fsync(handle_.get()) != 0) {
            fail("cannot be flushed to disk");
        }
        if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
            fail("cannot be moved into place");
        }
        handle_.reset();
        sync_folder();
    }

private:
    static constexpr std::size_t buffer_bytes = std::size_t{1} << 20;

    [[noreturn]] void fail(const std::string& what) const {
        throw InputError(path_, written_bytes_, what + ": " + system_words(errno),
                         "check free space and permissions");
    }
    void seek(std::uint64_t offset) {
        if (::lseek(handle_.get(), static_cast<::off_t>(offset), SEEK_SET) < 0) {
            fail("cannot be written");
        }
    }
    void flush() {
        write_out(buffer_);
        buffer_.clear();
    }
    void write_out(std::span<const std::byte> bytes) {
        constexpr std::size_t max_per_call = std::size_t{1} << 30;
        while (!bytes.empty()) {
            const ::ssize_t done = ::write(handle_.get(), bytes.data(), std::min(bytes.size(), max_per_call));
            if (done < 0 && errno == EINTR) {
                continue;
            }
            if (done < 0) {
                fail("cannot be written");
            }
            bytes = bytes.subspan(static_cast<std::size_t>(done));
            written_bytes_ += static_cast<std::uint64_t>(done);
        }
    }
    // The new name itself must survive a power cut; file systems that cannot sync a folder are left alone.
    void sync_folder() const {
        const std::size_t slash = path_.rfind('/');
        const std::string folder = slash == std::string::npos ? "." : path_.substr(0, slash + 1);
        const FileHandle handle(::open(folder.c_str(), O_RDONLY | O_CLOEXEC));
        if (handle.get() >= 0) {
            ::fsync(handle.get());
        }
    }

    std::string path_;
    std::string temporary_;
    FileHandle handle_;
    std::vector<std::byte> buffer_;
    std::uint64_t written_bytes_ = 0;
};

}  // namespace ladder
