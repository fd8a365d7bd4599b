// What every static cache format shares: its name, how a file of it is told by its content, and the errors
// that name an n-gram.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/check.hpp"
#include "base/types.hpp"
#include "formats/source.hpp"

namespace ladder {

enum class StaticFormat { none, empty, llama, frozen, paired, summary };

[[nodiscard]] constexpr const char* format_name(StaticFormat format) noexcept {
    switch (format) {
        case StaticFormat::none:  // of a drafter that has no static cache
            return "none";
        case StaticFormat::empty:
            return "empty";
        case StaticFormat::llama:
            return "llama";
        case StaticFormat::frozen:
            return "frozen";
        case StaticFormat::paired:
            return "paired";
        case StaticFormat::summary:
            return "summary";
    }
    return "unknown";
}

// The fourth byte makes the first int32 negative, so that no llama.cpp file can begin like these.
inline constexpr std::array<std::uint8_t, 8> frozen_magic{'L', 'D', 'F', 0x93, 'F', 'R', 'Z', '1'};
inline constexpr std::array<std::uint8_t, 8> summary_magic{'L', 'D', 'F', 0x93, 'S', 'U', 'M', '1'};

inline constexpr std::size_t detection_bytes = 16;  // what a format is told by

[[nodiscard]] inline bool starts_with_magic(std::span<const std::byte> bytes,
                                            const std::array<std::uint8_t, 8>& magic) noexcept {
    return bytes.size() >= magic.size() &&
           std::equal(magic.begin(), magic.end(), bytes.begin(),
                      [](std::uint8_t want, std::byte have) { return std::byte{want} == have; });
}

// By content; anything that is neither empty nor of a known magic counts as llama.cpp's, whose reader says
// what is wrong with it.
[[nodiscard]] inline StaticFormat detect_static_format(std::span<const std::byte> bytes) noexcept {
    if (bytes.empty()) {
        return StaticFormat::empty;
    }
    if (starts_with_magic(bytes, summary_magic)) {
        return StaticFormat::summary;
    }
    if (!starts_with_magic(bytes, frozen_magic)) {
        return StaticFormat::llama;
    }
    // Behind magic and version the header says how the const map is laid out; 1 is the paired layout.
    const bool paired = bytes.size() >= detection_bytes && bytes[12] == std::byte{1};
    return paired ? StaticFormat::paired : StaticFormat::frozen;
}

[[nodiscard]] inline StaticFormat detect_static_format(const std::string& path) {
    Source source = Source::from_file(path, detection_bytes);
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(source.size_bytes(), detection_bytes));
    return size == 0 ? StaticFormat::empty : detect_static_format(std::span(source.take(size), size));
}

[[nodiscard]] inline std::string bigram_words(Bigram bigram) {
    std::string words = "(";  // appended to: g++ 12 warns falsely about "(" + std::string
    return words.append(std::to_string(bigram.first))
        .append(", ")
        .append(std::to_string(bigram.second))
        .append(")");
}

// For consumers: only they know which n-grams came before.
[[noreturn]] inline void throw_repeated_ngram(const std::string& file, std::uint64_t offset, Bigram bigram) {
    throw InputError(file, offset, "n-gram " + bigram_words(bigram) + " occurs twice",
                     "build the cache again");
}

// `largest` is the largest token of an n-gram and its successors.
inline void check_vocabulary(const std::string& file, std::uint64_t offset, Bigram bigram,
                             std::uint64_t largest, std::uint64_t vocabulary_size) {
    if (vocabulary_size != 0 && largest >= vocabulary_size) [[unlikely]] {
        throw InputError(file, offset,
                         "n-gram " + bigram_words(bigram) + " holds token " + std::to_string(largest) +
                             ", but the vocabulary has " + std::to_string(vocabulary_size),
                         "use the cache made with this tokenizer");
    }
}

}  // namespace ladder
