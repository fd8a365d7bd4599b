// Where a static cache is loaded from: a file, or bytes in memory (tests build thousands of small ones).
#pragma once

#include <span>
#include <string>

#include "formats/source.hpp"
#include "formats/static_format.hpp"

namespace ladder {

class StaticSource {
public:
    static StaticSource file(std::string path) { return StaticSource(std::move(path), {}, false); }
    // The bytes must outlive the source.
    static StaticSource memory(std::span<const std::byte> bytes) {
        return StaticSource("<bytes>", bytes, true);
    }

    const std::string& name() const { return name_; }
    bool in_memory() const { return in_memory_; }
    std::span<const std::byte> bytes() const { return bytes_; }
    StaticFormat format() const {
        return in_memory_ ? detect_static_format(bytes_) : detect_static_format(name_);
    }
    // A reader from front to back.
    Source open() const { return in_memory_ ? Source::from_bytes(bytes_, name_) : Source::from_file(name_); }

    // Refuses a source in another format than the variant's own.
    void require(StaticFormat wanted) const {
        const StaticFormat found = format();
        if (found != wanted && found != StaticFormat::empty) {
            throw InputError(name_, 0,
                             std::string("is a static cache in the ") + format_name(found) +
                                 " format, this variant loads the " + format_name(wanted) + " format",
                             "give the llama.cpp file; other formats are made from it");
        }
    }

private:
    StaticSource(std::string name, std::span<const std::byte> bytes, bool in_memory)
        : name_(std::move(name)), bytes_(bytes), in_memory_(in_memory) {}

    std::string name_;
    std::span<const std::byte> bytes_;
    bool in_memory_;
};

}  // namespace ladder
