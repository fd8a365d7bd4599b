// Makes a frozen file: from bigrams one by one, or from llama.cpp's file.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/check.hpp"
#include "base/clock.hpp"
#include "base/types.hpp"
#include "base/xxh64.hpp"
#include "containers/const_map_builder.hpp"
#include "formats/frozen_file.hpp"
#include "formats/sink.hpp"
#include "formats/sorted_cache.hpp"

namespace ladder {

// Writes a frozen file: add() every bigram once, in any order, then finish().
class FrozenWriter {
public:
    explicit FrozenWriter(Sink& sink, MapLayout layout = MapLayout::split, std::uint64_t vocabulary_size = 0)
        : sink_(sink) {
        header_.magic = frozen_magic;
        header_.version = frozen::version;
        header_.layout = layout;
        header_.vocabulary_size = vocabulary_size;
        header_.successors_offset = sizeof(frozen::Header);
        sink_.write(std::as_bytes(std::span(&header_, 1)));
    }

    // `successors` are sorted by token.
    void add(Bigram bigram, std::span<const Successor> successors) {
        const std::uint64_t first = header_.n_successors;
        const std::uint64_t count = successors.size();
        if (count < 1 || count >= frozen::count_limit || first + count > frozen::offset_limit) {
            throw InputError("frozen cache: bigram " + bigram_words(bigram) + ": " + std::to_string(count) +
                             " successors from number " + std::to_string(first) +
                             " do not fit 24 bits of count and 40 bits of offset; use a smaller corpus");
        }
        const auto largest = static_cast<std::uint64_t>(successors.back().token);
        header_.token_limit =
            std::max({header_.token_limit, largest + 1, static_cast<std::uint64_t>(bigram.first) + 1,
                      static_cast<std::uint64_t>(bigram.second) + 1});
        keys_.push_back(bigram);
        values_.push_back(first << frozen::count_bits | count);
        header_.n_successors += count;
        digest_.update(std::as_bytes(successors));
        sink_.write(std::as_bytes(successors));
    }

    const frozen::Header& finish() {
        pad();
        const AlignedBuffer map = build_const_map(header_.layout, keys_, values_);
        header_.n_bigrams = keys_.size();
        header_.map_offset = sink_.offset();
        header_.map_bytes = map.size();
        sink_.write(map.bytes());
        header_.file_bytes = sink_.offset();
        header_.successors_xxh64 = digest_.digest();
        header_.header_xxh64 = header_digest(header_);
        sink_.patch(0, std::as_bytes(std::span(&header_, 1)));
        return header_;
    }

private:
    void pad() {
        constexpr std::array<std::byte, frozen::section_alignment> zeros{};
        const std::uint64_t over = sink_.offset() % frozen::section_alignment;
        if (over != 0) {
            sink_.write(std::span(zeros).first(static_cast<std::size_t>(frozen::section_alignment - over)));
        }
    }

    Sink& sink_;
    frozen::Header header_{};
    Xxh64 digest_;
    std::vector<Bigram> keys_;
    std::vector<std::uint64_t> values_;
};

struct FreezeReport {
    std::uint64_t n_bigrams = 0;
    std::uint64_t n_successors = 0;
    std::uint64_t file_bytes = 0;
    std::uint64_t read_ns = 0;   // parsing the source, sorting successors and bigrams
    std::uint64_t write_ns = 0;  // successors, const map, header
};

// Freezes a llama.cpp cache (n-grams in any order) into a sink. Equal content gives equal bytes.
[[nodiscard]] inline FreezeReport freeze(Source& source, Sink& sink, MapLayout layout = MapLayout::split,
                                         std::uint64_t vocabulary_size = 0, const Poll& poll = {}) {
    FreezeReport report;
    LapTimer watch;
    const SortedCache cache(source, vocabulary_size, poll);
    report.read_ns = watch.lap();
    FrozenWriter writer(sink, layout, vocabulary_size);
    cache.for_each([&](Bigram bigram, auto list) { writer.add(bigram, list); });
    const frozen::Header& header = writer.finish();
    report.write_ns = watch.lap();
    report.n_bigrams = header.n_bigrams;
    report.n_successors = header.n_successors;
    report.file_bytes = header.file_bytes;
    return report;
}

inline FreezeReport freeze(const std::string& llama_path, const std::string& frozen_path,
                           MapLayout layout = MapLayout::split, std::uint64_t vocabulary_size = 0,
                           const Poll& poll = {}) {
    Source source = Source::from_file(llama_path);
    AtomicFile file(frozen_path);
    const FreezeReport report = freeze(source, file, layout, vocabulary_size, poll);
    if (poll) {
        poll();  // the map takes seconds; nothing has appeared yet
    }
    file.commit();
    return report;
}

[[nodiscard]] inline std::vector<std::byte> freeze_bytes(std::span<const std::byte> llama_bytes,
                                                         MapLayout layout = MapLayout::split,
                                                         const std::string& name = "<bytes>") {
    Source source = Source::from_bytes(llama_bytes, name);
    MemorySink sink;
    static_cast<void>(freeze(source, sink, layout));
    return sink.take();
}

}  // namespace ladder
