// A file's bytes in the address space, shared with every process that maps it: nothing is read until touched.
// POSIX only (Linux and macOS).
#pragma once

#include <sys/mman.h>

#include <cerrno>
#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "base/platform.hpp"
#include "formats/file_io.hpp"
#include "formats/vanished_pages.hpp"

namespace ladder {

class MappedFile {
public:
    MappedFile() = default;
    explicit MappedFile(const std::string& path) {
        const OpenedFile file = open_regular_file(path);
        size_bytes_ = static_cast<std::size_t>(file.size_bytes);
        if (size_bytes_ == 0) {
            return;
        }
        void* const address = ::mmap(nullptr, size_bytes_, PROT_READ, MAP_SHARED, file.handle.get(), 0);
        if (address == MAP_FAILED) {
            throw InputError(path, 0, "cannot be mapped: " + system_words(errno), "free some memory");
        }
        address_ = static_cast<const std::byte*>(address);
        watched_ = VanishedPages::remember(address, size_bytes_, path);
    }
    MappedFile(MappedFile&& other) noexcept { swap(other); }
    MappedFile& operator=(MappedFile&& other) noexcept {
        swap(other);
        return *this;
    }
    ~MappedFile() {
        if (address_ != nullptr) {
            VanishedPages::forget(watched_);
            ::munmap(const_cast<std::byte*>(address_), size_bytes_);
        }
    }

    [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return {address_, size_bytes_}; }

    // Brings every page in now, so that no later read waits for one.
    void prefault() const noexcept {
        if (address_ == nullptr || populate_for_reading(address_, size_bytes_)) {
            return;
        }
        constexpr std::size_t smallest_page = 4096;
        for (std::size_t at = 0; at < size_bytes_; at += smallest_page) {
            static_cast<void>(*static_cast<const volatile std::byte*>(address_ + at));
        }
    }

private:
    void swap(MappedFile& other) noexcept {
        std::swap(address_, other.address_);
        std::swap(size_bytes_, other.size_bytes_);
        std::swap(watched_, other.watched_);
    }

    const std::byte* address_ = nullptr;
    std::size_t size_bytes_ = 0;
    std::size_t watched_ = VanishedPages::n_slots;
};

}  // namespace ladder
