// External sort of static caches. A spill file is itself a static cache in llama.cpp's format, n-grams and
// successors ascending, of a part of the tokens (or of an unsorted cache); merging them adds the counts. So
// building beyond memory and merging caches are one thing.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <queue>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "base/types.hpp"
#include "base/xxh64.hpp"
#include "counting/bigram_counts.hpp"
#include "formats/file_io.hpp"
#include "formats/llama_cache_file.hpp"

namespace ladder {

// One number that orders bigrams as (first, second) does.
[[nodiscard]] inline std::uint64_t order_key(Bigram bigram) noexcept {
    return std::uint64_t{static_cast<std::uint32_t>(bigram.first)} << 32 |
           static_cast<std::uint32_t>(bigram.second);
}

[[nodiscard]] inline bool by_token(const Successor& a, const Successor& b) noexcept {
    return a.token < b.token;
}

// A digest of a cache's content that does not depend on the order of n-grams or successors: two wrapping
// sums over the n-grams.
struct ContentDigest {
    std::uint64_t low = 0;
    std::uint64_t high = 0;

    // `successors` are sorted by token.
    void add(Bigram bigram, std::span<const Successor> successors) {
        const std::uint64_t key = order_key(bigram);
        low += xxh64(std::as_bytes(successors), key);
        high += xxh64(std::as_bytes(successors), ~key * 0x9e3779b97f4a7c15U);
    }
};

struct CacheScan {
    CountReport counts;
    ContentDigest digest;
    std::uint64_t token_limit = 0;  // one more than the largest token id
    std::uint64_t total_count = 0;  // of all successors of all n-grams
    std::int32_t largest_count = 0;
    bool sorted = true;  // n-grams and successors ascending, as the builder writes them
};

namespace spill {

inline constexpr std::uint64_t progress_bytes = std::uint64_t{4} << 20;

// Tells how many bytes of all inputs are read, now and then.
class ReadProgress {
public:
    ReadProgress(const Progress& progress, const char* phase, std::uint64_t total)
        : progress_(progress), phase_(phase), total_(total) {}
    void add(std::uint64_t bytes) {
        done_ += bytes;
        if (progress_ && done_ >= next_) {
            progress_(phase_, done_, total_);
            next_ = done_ + progress_bytes;
        }
    }

private:
    const Progress& progress_;
    const char* phase_;
    std::uint64_t total_;
    std::uint64_t done_ = 0;
    std::uint64_t next_ = 0;
};

[[nodiscard]] inline std::uint64_t record_bytes(std::size_t n_successors) noexcept {
    return llama_header_bytes + n_successors * sizeof(Successor);
}

// Reads the file once more for the place: duplicates are rare, keeping every offset is not.
[[noreturn]] inline void refuse_repeated(const std::string& path, Bigram bigram) {
    Source source = Source::from_file(path);
    bool seen = false;
    read_llama_cache(source, [&](Bigram found, std::span<const Successor>, std::uint64_t offset) {
        if (found == bigram && std::exchange(seen, true)) {
            throw_repeated_ngram(path, offset, bigram);
        }
    });
    throw InputError(path, 0, "changed while it was read", "let nothing write to it");
}

// Of a file whose n-grams are in no order: 8 bytes for each n-gram, a fifth of the file at most.
inline void check_unique(const std::string& path, std::uint64_t n_bigrams, const Progress& progress) {
    std::vector<std::uint64_t> keys;
    keys.reserve(static_cast<std::size_t>(n_bigrams));
    Source source = Source::from_file(path);
    ReadProgress read(progress, "unique", source.size_bytes());
    read_llama_cache(source, [&](Bigram bigram, std::span<const Successor> successors, std::uint64_t) {
        keys.push_back(order_key(bigram));
        read.add(record_bytes(successors.size()));
    });
    std::sort(keys.begin(), keys.end());
    const auto repeated = std::adjacent_find(keys.begin(), keys.end());
    if (repeated != keys.end()) {
        refuse_repeated(path,
                        {static_cast<Token>(*repeated >> 32), static_cast<Token>(*repeated & 0xffffffffU)});
    }
}

}  // namespace spill

// Reads and checks a whole cache in llama.cpp's format. InputError with the byte offset for anything
// drafting.md does not allow and, where the vocabulary size is known (not 0), for a token beyond it.
[[nodiscard]] inline CacheScan scan_cache(const std::string& path, std::uint64_t vocabulary_size,
                                          const Progress& progress) {
    CacheScan scan;
    Source source = Source::from_file(path);
    spill::ReadProgress read(progress, "read", source.size_bytes());
    const std::uint64_t limit = vocabulary_size == 0 ? std::uint64_t{1} << 31 : vocabulary_size;
    std::optional<std::uint64_t> previous;
    std::vector<Successor> ordered;
    read_llama_cache(source, [&](Bigram bigram, std::span<const Successor> list, std::uint64_t offset) {
        const std::uint64_t key = order_key(bigram);
        if (previous && *previous == key) {
            throw_repeated_ngram(path, offset, bigram);
        }
        scan.sorted &= !previous || *previous < key;
        previous = key;
        std::span<const Successor> successors = list;
        if (!std::is_sorted(list.begin(), list.end(), by_token)) {
            scan.sorted = false;
            ordered.assign(list.begin(), list.end());
            std::sort(ordered.begin(), ordered.end(), by_token);
            successors = ordered;
        }
        const auto largest =
            static_cast<std::uint64_t>(std::max({bigram.first, bigram.second, successors.back().token}));
        if (largest >= limit) [[unlikely]] {
            throw InputError(path, offset,
                             "n-gram " + bigram_words(bigram) + " holds token " + std::to_string(largest) +
                                 ", but the vocabulary has " + std::to_string(limit),
                             "use the cache made with this tokenizer");
        }
        scan.token_limit = std::max(scan.token_limit, largest + 1);
        for (const Successor& successor : successors) {
            scan.total_count += static_cast<std::uint64_t>(successor.count);
            scan.largest_count = std::max(scan.largest_count, successor.count);
        }
        scan.counts.add(successors.size());
        scan.digest.add(bigram, successors);
        read.add(spill::record_bytes(list.size()));
    });
    if (!scan.sorted) {
        spill::check_unique(path, scan.counts.n_bigrams, progress);
    }
    return scan;
}

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
    const CountReport report = count_bigrams(
        std::move(bytes), tokens_path, part,
        [&](Bigram bigram, std::span<const Successor> successors) { writer.write(bigram, successors); });
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
    spill::ReadProgress read(progress, "sort", source.size_bytes());
    SpillSorter sorter(path, prefix, memory_bytes);
    read_llama_cache(source, [&](Bigram bigram, std::span<const Successor> list, std::uint64_t offset) {
        sorter.add(bigram, list, offset);
        read.add(spill::record_bytes(list.size()));
    });
    return sorter.finish();
}

// A sorted cache file, one n-gram at a time.
class SortedReader {
public:
    explicit SortedReader(Source source) : source_(std::move(source)) { next(); }

    // False at the end. InputError where the order is not that of a sorted cache.
    bool next() {
        if (source_.remaining() == 0) {
            at_end_ = true;
            return false;
        }
        const std::uint64_t offset = source_.offset();
        const auto [bigram, n_successors] = llama_cache::read_header(source_);
        const std::byte* bytes = source_.take(n_successors * sizeof(Successor));
        successors_ = {reinterpret_cast<const Successor*>(bytes), n_successors};
        llama_cache::check_successors(source_, offset + llama_header_bytes, bigram, successors_, scratch_);
        const std::uint64_t key = order_key(bigram);
        const bool ascending = std::is_sorted(successors_.begin(), successors_.end(), by_token);
        if ((started_ && key <= key_) || !ascending) {
            throw InputError(source_.name(), offset, "n-gram " + bigram_words(bigram) + " is not in order",
                             "sort the cache first");
        }
        started_ = true;
        key_ = key;
        bigram_ = bigram;
        return true;
    }

    [[nodiscard]] bool at_end() const noexcept { return at_end_; }
    [[nodiscard]] std::uint64_t key() const noexcept { return key_; }
    [[nodiscard]] Bigram bigram() const noexcept { return bigram_; }
    [[nodiscard]] std::span<const Successor> successors() const noexcept { return successors_; }
    [[nodiscard]] std::uint64_t size_bytes() const noexcept { return source_.size_bytes(); }

private:
    Source source_;
    std::vector<Token> scratch_;
    std::span<const Successor> successors_;
    Bigram bigram_{};
    std::uint64_t key_ = 0;
    bool started_ = false;
    bool at_end_ = false;
};

struct MergeOptions {
    std::uint64_t largest_count = std::numeric_limits<std::int32_t>::max();
    bool unique = false;         // the inputs are parts of one cache: no n-gram may be in two of them
    std::string name = "merge";  // stands for the result in errors
    Progress progress = {};
};

// An n-gram that two parts of one cache hold.
class RepeatedNgram : public InputError {
public:
    explicit RepeatedNgram(Bigram bigram)
        : InputError("n-gram " + bigram_words(bigram) + " occurs twice"), bigram_(bigram) {}
    [[nodiscard]] Bigram bigram() const noexcept { return bigram_; }

private:
    Bigram bigram_;
};

// Adds the counts of sorted caches. Memory: one buffer (256 KiB, or the longest successor list) an input.
class CacheMerger {
public:
    CacheMerger(std::vector<Source> sources, MergeOptions options) : options_(std::move(options)) {
        for (Source& source : sources) {
            readers_.emplace_back(std::move(source));
            total_bytes_ += readers_.back().size_bytes();
        }
        for (std::size_t i = 0; i < readers_.size(); ++i) {
            queue_if_more(i);
        }
    }

    // on_bigram(Bigram, std::span<const Successor>), ascending. InputError for a sum that int32 cannot hold.
    template <class OnBigram>
    CountReport run(OnBigram&& on_bigram) {
        CountReport report;
        spill::ReadProgress read(options_.progress, "merge", total_bytes_);
        while (!queue_.empty()) {
            const std::uint64_t key = queue_.top().first;
            const std::size_t first = pop();
            const Bigram bigram = readers_[first].bigram();
            std::span<const Successor> sum = readers_[first].successors();
            read.add(spill::record_bytes(sum.size()));
            group_.assign(1, first);
            while (!queue_.empty() && queue_.top().first == key) {
                const std::size_t other = pop();
                if (options_.unique) {
                    throw RepeatedNgram(bigram);
                }
                read.add(spill::record_bytes(readers_[other].successors().size()));
                sum = add(bigram, sum, readers_[other].successors());
                group_.push_back(other);
            }
            report.add(sum.size());
            on_bigram(bigram, sum);
            for (const std::size_t reader : group_) {
                readers_[reader].next();
                queue_if_more(reader);
            }
        }
        return report;
    }

private:
    using Place = std::pair<std::uint64_t, std::size_t>;  // key, reader

    void queue_if_more(std::size_t reader) {
        if (!readers_[reader].at_end()) {
            queue_.emplace(readers_[reader].key(), reader);
        }
    }

    std::size_t pop() {
        const std::size_t reader = queue_.top().second;
        queue_.pop();
        return reader;
    }

    // The union of two sorted lists, counts added; into the one of two buffers that `a` is not.
    [[nodiscard]] std::span<const Successor> add(Bigram bigram, std::span<const Successor> a,
                                                 std::span<const Successor> b) {
        std::vector<Successor>& out = sums_[a.data() == sums_[0].data() ? 1 : 0];
        out.clear();
        auto i = a.begin();
        auto j = b.begin();
        while (i != a.end() && j != b.end()) {
            if (i->token == j->token) {
                const std::uint64_t count =
                    static_cast<std::uint64_t>(i->count) + static_cast<std::uint64_t>(j->count);
                if (count > options_.largest_count) [[unlikely]] {
                    counting::refuse_count(options_.name, bigram, i->token, count, options_.largest_count);
                }
                out.push_back({i->token, static_cast<std::int32_t>(count)});
                ++i;
                ++j;
            } else {
                out.push_back(i->token < j->token ? *i++ : *j++);
            }
        }
        out.insert(out.end(), i, a.end());
        out.insert(out.end(), j, b.end());
        return out;
    }

    MergeOptions options_;
    std::vector<SortedReader> readers_;
    std::priority_queue<Place, std::vector<Place>, std::greater<>> queue_;
    std::vector<std::size_t> group_;
    std::array<std::vector<Successor>, 2> sums_;
    std::uint64_t total_bytes_ = 0;
};

// Merges sorted caches into one file of llama.cpp's format.
inline CountReport merge_sorted(const std::vector<std::string>& paths, const std::string& target,
                                const MergeOptions& options) {
    std::vector<Source> sources;
    for (const std::string& path : paths) {
        sources.push_back(Source::from_file(path));
    }
    CacheMerger merger(std::move(sources), options);
    AtomicFile file(target);
    LlamaCacheWriter writer(file);
    const CountReport report = merger.run(
        [&](Bigram bigram, std::span<const Successor> successors) { writer.write(bigram, successors); });
    file.commit();
    return report;
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
