// What the project's own file formats have in common: a header that knows its magic, its version, the file's
// size and its own checksum.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>

#include "base/check.hpp"
#include "base/xxh64.hpp"
#include "formats/static_format.hpp"

namespace ladder {

// A format in words: "frozen", and what to do about a damaged or an outdated file.
struct FormatWords {
    const char* name;
    const char* remedy;
};

[[noreturn]] inline void refuse_damaged(const FormatWords& format, const std::string& file,
                                        std::uint64_t offset, const std::string& problem) {
    throw InputError(file, offset, problem,
                     std::string("the ") + format.name + " file is damaged; " + format.remedy);
}

// Of everything before the checksum, which is the header's last field.
template <class Header>
[[nodiscard]] std::uint64_t header_digest(const Header& header) noexcept {
    return xxh64(std::as_bytes(std::span(&header, 1)).first(offsetof(Header, header_xxh64)));
}

// The header of a file that is whole: magic, version, checksum and size are right.
template <class Header>
[[nodiscard]] Header read_file_header(std::span<const std::byte> bytes, const std::string& file,
                                      const std::array<std::uint8_t, 8>& magic, std::uint32_t version,
                                      const FormatWords& format) {
    if (!starts_with_magic(bytes, magic)) {
        throw InputError(file, 0, std::string("is not a ") + format.name + " static cache", format.remedy);
    }
    if (bytes.size() < sizeof(Header)) {
        refuse_damaged(format, file, bytes.size(), "the file ends inside its header");
    }
    Header header;
    std::memcpy(&header, bytes.data(), sizeof header);
    if (header.version != version) {
        throw InputError(file, offsetof(Header, version),
                         "has version " + std::to_string(header.version) + ", this program reads version " +
                             std::to_string(version),
                         format.remedy);
    }
    if (header.header_xxh64 != header_digest(header)) {
        refuse_damaged(format, file, offsetof(Header, header_xxh64), "the header's checksum does not match");
    }
    if (header.file_bytes != bytes.size()) {
        refuse_damaged(format, file, std::min<std::uint64_t>(header.file_bytes, bytes.size()),
                       "the header names " + std::to_string(header.file_bytes) + " bytes, the file has " +
                           std::to_string(bytes.size()));
    }
    return header;
}

}  // namespace ladder
