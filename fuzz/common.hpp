// What the fuzz targets share: reading decisions from the input, and a trap that the fuzzer reports.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "base/types.hpp"
#include "formats/file_header.hpp"

namespace ladder::fuzz {

// A broken promise that no sanitizer would notice.
[[noreturn]] inline void finding(const std::string& what) {
    std::fprintf(stderr, "finding: %s\n", what.c_str());
    std::abort();
}

// Takes decisions off the front of the input; zeros once it is used up.
class Reader {
public:
    Reader(const std::uint8_t* data, std::size_t size) : bytes_(data, size) {}

    std::uint8_t byte() {
        if (bytes_.empty()) {
            return 0;
        }
        const std::uint8_t value = bytes_.front();
        bytes_ = bytes_.subspan(1);
        return value;
    }
    std::uint32_t word() {
        std::uint32_t value = 0;
        for (int i = 0; i < 4; ++i) {
            value = value << 8 | byte();
        }
        return value;
    }
    bool empty() const { return bytes_.empty(); }
    std::span<const std::uint8_t> rest() const { return bytes_; }

private:
    std::span<const std::uint8_t> bytes_;
};

inline std::vector<std::byte> as_bytes(std::span<const std::uint8_t> bytes) {
    std::vector<std::byte> result;
    for (const std::uint8_t value : bytes) {
        result.push_back(std::byte{value});
    }
    return result;
}

// Bytes to flip in a file that is made here, read from the input before the file's content.
class Damage {
public:
    explicit Damage(Reader& reader) : flips_(reader.byte() % 8) {
        for (auto& [offset, bits] : flips_) {
            offset = reader.word();
            bits = reader.byte();
        }
    }
    // Half of it goes into the header, which is small and says where everything is.
    void apply(std::vector<std::byte>& file, std::size_t header_bytes) const {
        for (const auto& [offset, bits] : flips_) {
            if (!file.empty()) {
                const std::size_t range = offset % 2 == 0 ? std::min(header_bytes, file.size()) : file.size();
                file[offset / 2 % range] ^= std::byte{bits};
            }
        }
    }

private:
    std::vector<std::pair<std::uint32_t, std::uint8_t>> flips_;
};

// Bits of a target's first byte: what is made right again in a damaged file.
enum Repair : std::uint8_t { right_size = 2, right_header = 4 };

// Checksums would keep a fuzzer at the door for ever. `repair_content` may mend what the header says of the
// rest.
template <class Header, class RepairContent>
void make_right(std::vector<std::byte>& file, std::uint8_t flags, const std::array<std::uint8_t, 8>& magic,
                std::uint32_t version, RepairContent repair_content) {
    if (file.size() < sizeof(Header)) {
        return;
    }
    Header header;
    std::memcpy(&header, file.data(), sizeof header);
    if ((flags & right_size) != 0) {
        header.magic = magic;
        header.version = version;
        header.file_bytes = file.size();
    }
    repair_content(header);
    if ((flags & right_header) != 0) {
        header.header_xxh64 = header_digest(header);
    }
    std::memcpy(file.data(), &header, sizeof header);
}

}  // namespace ladder::fuzz
