// External sort of static caches. A spill file is itself a static cache in llama.cpp's format, n-grams and
// successors ascending, of a part of the tokens (or of an unsorted cache); merging them adds the counts. So
// building beyond memory and merging caches are one thing.
#pragma once

#include <unistd.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "base/aligned_buffer.hpp"
#include "base/check.hpp"
#include "base/types.hpp"
#include "counting/bigram_counts.hpp"
#include "counting/cache_scan.hpp"
#include "counting/progress.hpp"
#include "formats/file_io.hpp"
#include "formats/llama_cache_file.hpp"
#include "formats/sorted_cache.hpp"

namespace ladder {

// Counts tokens [first, first + n) of a token file, with the two after them that complete the last n-grams,
// into a spill file. Memory: 12 bytes a token (20 with a vocabulary beyond 2^21).
inline CountReport count_part(const std::string& tokens_path, std::uint64_t first, std::uint64_t n,
                              const std::string& target, const CountOptions& options) {
    OpenedFile file = open_regular_file(tokens_path);
    const std::uint64_t whole_bytes = file.size_bytes / sizeof(Token) * sizeof(Token);
    const std::uint64_t begin = std::min(first * sizeof(Token), whole_bytes);
    std::uint64_t end = std::min((first + n + static_ngram) * sizeof(Token), whole_bytes);
    if (end == whole_bytes) {
        end = file.size_bytes;  // an incomplete last token is count_bigrams' to name
    }
    if (::lseek(file.handle.get(), static_cast<::off_t>(begin), SEEK_SET) < 0) {
        throw InputError(tokens_path, begin, "cannot be read: " + system_words(errno), "check the disk");
    }
    AlignedBuffer bytes(static_cast<std::size_t>(end - begin));
    read_exactly(file.handle.get(), bytes.data(), bytes.size(), tokens_path, begin);
    AtomicFile out(target);
    LlamaCacheWriter writer(out);
    CountOptions part = options;
    part.first_byte = begin;
    const CountReport report = count_bigrams(std::move(bytes), tokens_path, part,
                                             [&](Bigram bigram, auto list) { writer.write(bigram, list); });
    out.commit();
    return report;
}

// Collects n-grams until its memory is full, and writes them sorted.
class SpillSorter {
public:
    SpillSorter(std::string source, std::string prefix, std::size_t memory_bytes)
        : source_(std::move(source)), prefix_(std::move(prefix)), arena_(memory_bytes / 4 * 3) {
        places_.reserve(memory_bytes / 4 / sizeof(std::uint64_t));
    }

    void add(Bigram bigram, std::span<const Successor> successors, std::uint64_t offset) {
        const std::size_t size = sizeof(Record) + successors.size_bytes();
        if (size > arena_.size()) {
            throw InputError(source_, offset,
                             "n-gram " + bigram_words(bigram) + " has " + std::to_string(successors.size()) +
                                 " successors, more than fit the memory bound",
                             "allow more memory");
        }
        if (used_ + size > arena_.size() || places_.size() == places_.capacity()) {
            flush();
        }
        const Record record{bigram, static_cast<std::uint32_t>(successors.size()), 0};
        std::memcpy(arena_.data() + used_, &record, sizeof record);
        auto* const list = reinterpret_cast<Successor*>(arena_.data() + used_ + sizeof record);
        std::copy(successors.begin(), successors.end(), list);
        std::sort(list, list + successors.size(), by_token);
        places_.push_back(used_);
        used_ += size;
    }

    // The spill files, in the order they were written.
    [[nodiscard]] std::vector<std::string> finish() {
        flush();
        return std::move(paths_);
    }

private:
    struct Record {
        Bigram bigram;
        std::uint32_t n_successors;
        std::uint32_t padding;
    };

    [[nodiscard]] const Record& record(std::uint64_t place) const noexcept {
        return *reinterpret_cast<const Record*>(arena_.data() + place);
    }

    void flush() {
        if (places_.empty()) {
            return;
        }
        std::sort(places_.begin(), places_.end(), [this](std::uint64_t a, std::uint64_t b) {
            return order_key(record(a).bigram) < order_key(record(b).bigram);
        });
        const auto repeated = std::adjacent_find(
            places_.begin(), places_.end(),
            [this](std::uint64_t a, std::uint64_t b) { return record(a).bigram == record(b).bigram; });
        if (repeated != places_.end()) {
            spill::refuse_repeated(source_, record(*repeated).bigram);
        }
        paths_.push_back(prefix_ + std::to_string(paths_.size()) + ".bin");
        AtomicFile file(paths_.back());
        LlamaCacheWriter writer(file);
        for (const std::uint64_t place : places_) {
            const Record& head = record(place);
            const auto* list = reinterpret_cast<const Successor*>(arena_.data() + place + sizeof(Record));
            writer.write(head.bigram, {list, head.n_successors});
        }
        file.commit();
        places_.clear();
        used_ = 0;
    }

    std::string source_;
    std::string prefix_;
    AlignedBuffer arena_;
    std::vector<std::uint64_t> places_;
    std::uint64_t used_ = 0;
    std::vector<std::string> paths_;
};

// Sorts a cache in llama.cpp's format into spill files `<prefix><number>.bin` of about `memory_bytes`.
// InputError naming the byte offset of an n-gram that occurs twice inside one of them.
[[nodiscard]] inline std::vector<std::string> sort_cache(const std::string& path, const std::string& prefix,
                                                         std::size_t memory_bytes, const Progress& progress) {
    Source source = Source::from_file(path);
    ReadProgress read(progress, "sort", source.size_bytes());
    SpillSorter sorter(path, prefix, memory_bytes);
    read_llama_cache(source, [&](Bigram bigram, std::span<const Successor> list, std::uint64_t offset) {
        sorter.add(bigram, list, offset);
        read.add(record_bytes(list.size()));
    });
    return sorter.finish();
}

// Sorted caches in memory, each of one range of bigrams: part p holds the keys below bounds[p] and not below
// bounds[p - 1], the last one the rest.
class RangeSplitter {
public:
    explicit RangeSplitter(std::vector<std::uint64_t> bounds)
        : bounds_(std::move(bounds)), sinks_(bounds_.size() + 1) {
        LADDER_CHECK(std::is_sorted(bounds_.begin(), bounds_.end()));
    }

    // Bigrams ascending.
    void add(Bigram bigram, std::span<const Successor> successors) {
        while (part_ < bounds_.size() && order_key(bigram) >= bounds_[part_]) {
            ++part_;
        }
        LlamaCacheWriter(sinks_[part_]).write(bigram, successors);
    }

    [[nodiscard]] std::vector<std::vector<std::byte>> take() {
        std::vector<std::vector<std::byte>> parts;
        for (MemorySink& sink : sinks_) {
            parts.push_back(sink.take());
        }
        return parts;
    }

private:
    std::vector<std::uint64_t> bounds_;
    std::vector<MemorySink> sinks_;
    std::size_t part_ = 0;
};

}  // namespace ladder
