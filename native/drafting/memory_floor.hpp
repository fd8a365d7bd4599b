// What memory itself takes: random reads of one cache line from a table as large as the static cache. No
// drafter that looks a bigram up in such a table can be faster than one read a draft step.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/aligned_buffer.hpp"
#include "base/clock.hpp"
#include "base/hash.hpp"

namespace ladder {

struct MemoryFloor {
    double dependent_ns;    // each address depends on the value read before
    double independent_ns;  // addresses are known beforehand: reads overlap
};

// InputError if the table is smaller than a line or no read is asked for.
inline MemoryFloor measure_memory_floor(std::size_t table_bytes, std::uint64_t reads) {
    constexpr std::size_t line_words = 8;
    const std::size_t lines = table_bytes / (line_words * sizeof(std::uint64_t));
    if (lines == 0 || reads == 0) {
        throw InputError(
            "memory floor: nothing to measure; give a table of 64 bytes or more and a read or more");
    }
    AlignedBuffer memory(lines * line_words * sizeof(std::uint64_t));
    auto* const words = reinterpret_cast<std::uint64_t*>(memory.data());
    for (std::size_t line = 0; line < lines; ++line) {
        words[line * line_words] = line;
    }
    const auto address_of = [&](std::uint64_t number, std::uint64_t before) {
        const std::uint64_t mixed =
            multiply_fold(number + 0x9e3779b97f4a7c15ULL, 0xd1b54a32d192ed03ULL ^ before);
        __extension__ using Wide = unsigned __int128;
        return static_cast<std::size_t>(static_cast<Wide>(mixed) * lines >> 64) * line_words;
    };
    const Clock clock;
    std::uint64_t value = 0;
    const Clock::Ticks start = clock.now();
    for (std::uint64_t i = 0; i < reads; ++i) {
        value = words[address_of(i, value)];
    }
    const Clock::Ticks between = clock.now();
    std::uint64_t sum = value;
    for (std::uint64_t i = 0; i < reads; ++i) {
        sum += words[address_of(i + reads, 0)];
    }
    const Clock::Ticks end = clock.now();
    [[maybe_unused]] volatile std::uint64_t sink = sum;
    const double ns = clock.ns_per_tick() / static_cast<double>(reads);
    return {static_cast<double>(between - start) * ns, static_cast<double>(end - between) * ns};
}

}  // namespace ladder
