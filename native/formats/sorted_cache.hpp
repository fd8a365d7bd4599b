// Static caches sorted by bigram and inside by token: any cache of llama.cpp's format sorted in memory, and a
// file that is sorted already read one n-gram at a time. Every other format, and merging, begins here.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "base/types.hpp"
#include "formats/llama_cache_file.hpp"

namespace ladder {

// One number that orders bigrams as (first, second) does.
[[nodiscard]] inline std::uint64_t order_key(Bigram bigram) noexcept {
    return std::uint64_t{static_cast<std::uint32_t>(bigram.first)} << 32 |
           static_cast<std::uint32_t>(bigram.second);
}

// Called now and then during long work; an exception thrown here cancels it.
using Poll = std::function<void()>;

// All n-grams of a llama.cpp cache, sorted by key, successors sorted by token.
class SortedCache {
public:
    // InputError on an n-gram that occurs twice and, if the vocabulary size is known, on a token beyond it.
    explicit SortedCache(Source& source, std::uint64_t vocabulary_size = 0, const Poll& poll = {}) {
        successors_.reserve(
            static_cast<std::size_t>(source.size_bytes() / sizeof(Successor)));  // touched as filled
        read_llama_cache(source, [&](Bigram bigram, std::span<const Successor> list, std::uint64_t offset) {
            records_.push_back({bigram, static_cast<std::uint32_t>(list.size()),
                                static_cast<std::uint32_t>(records_.size()), successors_.size()});
            successors_.insert(successors_.end(), list.begin(), list.end());
            const auto start = successors_.end() - static_cast<std::ptrdiff_t>(list.size());
            if (!std::is_sorted(start, successors_.end(), by_token)) {
                std::sort(start, successors_.end(), by_token);
            }
            const auto largest =
                static_cast<std::uint64_t>(std::max({bigram.first, bigram.second, successors_.back().token}));
            check_vocabulary(source.name(), offset, bigram, largest, vocabulary_size);
            token_limit_ = std::max(token_limit_, largest + 1);
            if (poll && records_.size() % records_per_poll == 0) {
                poll();
            }
        });
        const auto by_key = [](const Record& a, const Record& b) {
            return std::pair(a.bigram, a.number) < std::pair(b.bigram, b.number);
        };
        if (!std::is_sorted(records_.begin(), records_.end(), by_key)) {
            std::sort(records_.begin(), records_.end(), by_key);
        }
        refuse_repeated(source);
    }

    // visit(Bigram, std::span<const Successor>) in the order of the keys.
    template <class Visit>
    void for_each(Visit&& visit) const {
        for (const Record& record : records_) {
            visit(record.bigram,
                  std::span(successors_).subspan(static_cast<std::size_t>(record.first), record.count));
        }
    }
    [[nodiscard]] std::size_t n_bigrams() const noexcept { return records_.size(); }
    [[nodiscard]] std::size_t n_successors() const noexcept { return successors_.size(); }
    // One more than the largest token id.
    [[nodiscard]] std::uint64_t token_limit() const noexcept { return token_limit_; }

private:
    struct Record {
        Bigram bigram;
        std::uint32_t count;
        std::uint32_t number;  // in file order
        std::uint64_t first;
    };

    static constexpr std::size_t records_per_poll = std::size_t{1} << 16;

    void refuse_repeated(const Source& source) const {
        const auto repeated =
            std::adjacent_find(records_.begin(), records_.end(),
                               [](const Record& a, const Record& b) { return a.bigram == b.bigram; });
        if (repeated != records_.end()) {
            // Records lie end to end in the file: number and successors before it give the place.
            const Record& second = *std::next(repeated);
            throw_repeated_ngram(source.name(),
                                 second.number * llama_header_bytes + second.first * sizeof(Successor),
                                 second.bigram);
        }
    }

    std::uint64_t token_limit_ = 0;
    std::vector<Record> records_;
    std::vector<Successor> successors_;
};

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
        std::tie(bigram_, successors_) = llama_cache::read_record(source_, scratch_);
        const std::uint64_t key = order_key(bigram_);
        const bool ascending = std::is_sorted(successors_.begin(), successors_.end(), by_token);
        if ((started_ && key <= key_) || !ascending) {
            throw InputError(source_.name(), offset, "n-gram " + bigram_words(bigram_) + " is not in order",
                             "sort the cache first");
        }
        started_ = true;
        key_ = key;
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

}  // namespace ladder
