// The drafter's own files: what it has learned, or of that only the calibration, which holds no text.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>

#include "base/check.hpp"
#include "base/xxh64.hpp"
#include "beyond/calibrated/history/growing_array.hpp"
#include "formats/file_header.hpp"
#include "formats/sink.hpp"

namespace ladder::calibrated {

inline constexpr std::uint32_t state_version = 1;
inline constexpr std::array<std::uint8_t, 8> state_magic = {'L', 'D', 'R', 'C', 'A', 'L', 'I', 'B'};
inline constexpr FormatWords state_words = {"calibrated state", "save it again, or start without it"};

enum class StateKind : std::uint32_t { calibration = 1, everything = 2 };

struct StateHeader {
    std::array<std::uint8_t, 8> magic;
    std::uint32_t version;
    StateKind kind;
    std::uint64_t file_bytes;
    std::uint64_t vocabulary_size;  // 0 if unknown
    std::uint64_t header_xxh64;     // of everything before this field
};
static_assert(sizeof(StateHeader) == 40 && std::is_trivially_copyable_v<StateHeader>);

// After the header come sections: their size, their checksum, their bytes. Saver and Loader are called in the
// same order by the same code (`archive`), so that what is written and what is read cannot differ.
class Saver {
public:
    static constexpr bool loads = false;

    Saver(Sink& sink, StateKind kind, std::uint64_t vocabulary_size)
        : sink_(sink), header_{state_magic, state_version, kind, 0, vocabulary_size, 0} {
        write(std::as_bytes(std::span(&header_, 1)));
    }
    template <class T>
    void value(const T& value) {
        static_assert(std::is_trivially_copyable_v<T>);
        section(std::as_bytes(std::span(&value, 1)));
    }
    template <class T>
    void array(const GrowingArray<T>& array) {
        section(std::as_bytes(std::span(array.data(), array.size())));
    }
    void finish() {
        header_.file_bytes = sink_.offset();
        header_.header_xxh64 = header_digest(header_);
        sink_.patch(0, std::as_bytes(std::span(&header_, 1)));
    }

private:
    void section(std::span<const std::byte> bytes) {
        const std::array<std::uint64_t, 2> head = {bytes.size(), xxh64(bytes)};
        write(std::as_bytes(std::span(head)));
        write(bytes);
    }
    // Not inlined: of a sink in memory gcc 12 would warn of an overflow that cannot be.
    [[gnu::noinline]] void write(std::span<const std::byte> bytes) { sink_.write(bytes); }

    Sink& sink_;
    StateHeader header_;
};

class Loader {
public:
    static constexpr bool loads = true;

    // `bytes` must outlive the loader; `name` stands for the file in errors.
    Loader(std::span<const std::byte> bytes, std::string name, StateKind kind, std::uint64_t vocabulary_size)
        : bytes_(bytes), name_(std::move(name)) {
        const auto header =
            read_file_header<StateHeader>(bytes, name_, state_magic, state_version, state_words);
        require(header.kind == kind, "is not the kind of state that is asked for");
        require(
            header.vocabulary_size == 0 || vocabulary_size == 0 || header.vocabulary_size == vocabulary_size,
            "is of another vocabulary");
        offset_ = sizeof(StateHeader);
    }
    template <class T>
    void value(T& value) {
        static_assert(std::is_trivially_copyable_v<T>);
        const auto bytes = section();
        require(bytes.size() == sizeof(T), "a section has the wrong size");
        std::memcpy(&value, bytes.data(), sizeof(T));
    }
    template <class T>
    void array(GrowingArray<T>& array) {
        const auto bytes = section();
        require(bytes.size() % sizeof(T) == 0, "a section has the wrong size");
        array.assign(bytes.data(), bytes.size() / sizeof(T));
    }
    void finish() const { require(offset_ == bytes_.size(), "has something behind its end"); }

    void require(bool condition, const char* problem) const {
        if (!condition) {
            refuse_damaged(state_words, name_, offset_, problem);
        }
    }

private:
    std::span<const std::byte> section() {
        std::array<std::uint64_t, 2> head{};
        require(bytes_.size() - offset_ >= sizeof head, "the file ends inside a section");
        std::memcpy(head.data(), bytes_.data() + offset_, sizeof head);
        offset_ += sizeof head;
        require(bytes_.size() - offset_ >= head[0], "the file ends inside a section");
        const auto bytes = bytes_.subspan(offset_, static_cast<std::size_t>(head[0]));
        require(xxh64(bytes) == head[1], "a section's checksum does not match");
        offset_ += bytes.size();
        return bytes;
    }
    std::span<const std::byte> bytes_;
    std::string name_;
    std::size_t offset_ = 0;
};

}  // namespace ladder::calibrated
