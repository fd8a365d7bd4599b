// Where a format is written to: memory, or a file that appears whole or not at all. POSIX only (Linux and
// macOS).
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "formats/file_io.hpp"

namespace ladder {

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
