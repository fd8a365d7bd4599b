// Counts what followed every bigram of a token file, on several threads: each (a, b, successor) becomes one
// packed key, keys are partitioned by a, partitions are radix-sorted, equal keys are neighbours. Memory: 4
// bytes a token while they are read, 8 bytes a token (16 with a vocabulary beyond 2^21), one partition more
// for each thread.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/aligned_buffer.hpp"
#include "base/check.hpp"
#include "base/clock.hpp"
#include "base/types.hpp"
#include "counting/partitions.hpp"
#include "counting/progress.hpp"
#include "counting/task_pool.hpp"
#include "formats/static_format.hpp"

namespace ladder {

struct CountOptions {
    unsigned jobs = 1;
    std::uint64_t vocabulary_size = 0;  // 0: unknown, any id up to 2^31-1 is taken
    std::uint64_t largest_count = std::numeric_limits<std::int32_t>::max();
    Progress progress = {};
    std::uint64_t first_byte = 0;  // where the tokens lie in their file: for errors
};

struct CountReport {
    std::uint64_t n_tokens = 0;
    std::uint64_t n_bigrams = 0;
    std::uint64_t n_pairs = 0;        // distinct (a, b, successor)
    std::uint64_t n_single = 0;       // bigrams with one successor
    std::uint64_t n_at_most_100 = 0;  // bigrams with at most 100 successors
    std::uint64_t largest = 0;        // successors of the bigram that has most
    std::uint64_t scan_ns = 0;        // checking the tokens, planning the partitions
    std::uint64_t partition_ns = 0;   // packing
    std::uint64_t sort_write_ns = 0;  // sorting, with the consumer's work beside it

    void add(std::size_t n_successors) noexcept {
        ++n_bigrams;
        n_pairs += n_successors;
        n_single += n_successors == 1 ? 1 : 0;
        n_at_most_100 += n_successors <= 100 ? 1 : 0;
        largest = std::max<std::uint64_t>(largest, n_successors);
    }
};

namespace counting {

__extension__ typedef unsigned __int128 Wide;  // three tokens of more than 21 bits

// The largest token; InputError with the byte offset of the first one that is out of range.
[[nodiscard]] inline Token checked_maximum(std::span<const Token> tokens, Slice slice,
                                           const std::string& name, std::uint64_t limit,
                                           std::uint64_t first_byte) {
    std::uint32_t largest = 0;  // a negative token is larger than any other as an unsigned number
    for (std::size_t i = slice.begin; i < slice.end; ++i) {
        largest = std::max(largest, static_cast<std::uint32_t>(tokens[i]));
    }
    if (largest < limit) {
        return static_cast<Token>(largest);
    }
    std::size_t bad = slice.begin;
    while (static_cast<std::uint32_t>(tokens[bad]) < limit) {
        ++bad;
    }
    const std::string token = "token " + std::to_string(tokens[bad]);
    throw InputError(name, first_byte + bad * sizeof(Token),
                     tokens[bad] < 0 ? token + " is negative"
                                     : token + " is beyond the vocabulary of " + std::to_string(limit),
                     "make the token file again with the tokenizer it is used with");
}

[[noreturn]] inline void refuse_count(const std::string& name, Bigram bigram, Token token,
                                      std::uint64_t count, std::uint64_t largest_count) {
    throw InputError(name + ": n-gram " + bigram_words(bigram) + ": is followed by token " +
                     std::to_string(token) + " " + std::to_string(count) + " times, more than " +
                     std::to_string(largest_count) + "; use a smaller corpus");
}

// The work on one token file, with one key type.
template <class Key>
class Counter {
public:
    Counter(std::string name, const CountOptions& options, CountReport& report)
        : name_(std::move(name)), options_(options), report_(report) {}

    // Packs all (a, b, successor) into partitions.
    void pack(std::span<const Token> tokens, unsigned token_bits) {
        LapTimer watch;
        const std::vector<Slice> slices = cut(tokens.size() - static_ngram);
        make_plan(tokens, slices, token_bits);
        report_.scan_ns += watch.lap();
        keys_ = std::make_unique_for_overwrite<Key[]>(plan_.starts.back());
        run(slices.size(), "pack",
            [&](unsigned, std::size_t index) { scatter(tokens, slices[index], plan_.positions[index]); });
        plan_.positions.clear();
        report_.partition_ns += watch.lap();
    }

    // Sorts, and hands out the bigrams in ascending order: on_bigram(Bigram, std::span<const Successor>).
    template <class OnBigram>
    void emit(OnBigram&& on_bigram) {
        LapTimer watch;
        TaskPool pool(options_.jobs, plan_.n_partitions());
        std::vector<std::vector<Key>> scratch(pool.jobs());
        std::size_t emitted = 0;
        pool.run(
            [&](unsigned worker, std::size_t index) {
                radix_sort<Key>(partition(index), scratch[worker], 3 * plan_.token_bits);
            },
            [&](std::size_t sorted) {
                for (; emitted < sorted; ++emitted) {
                    emit_partition(partition(emitted), on_bigram);
                    say("sort", emitted + 1, plan_.n_partitions());
                }
                say("sort", emitted, plan_.n_partitions());
            });
        report_.sort_write_ns += watch.lap();
    }

private:
    void say(const char* phase, std::uint64_t done, std::uint64_t total) const {
        if (options_.progress) {
            options_.progress(phase, done, total);
        }
    }

    template <class Task>
    void run(std::size_t n_tasks, const char* phase, Task&& task) {
        TaskPool pool(options_.jobs, n_tasks);
        pool.run(task, [&](std::size_t done) { say(phase, done, n_tasks); });
    }

    void make_plan(std::span<const Token> tokens, const std::vector<Slice>& slices, unsigned token_bits) {
        plan_.token_bits = token_bits;
        plan_.bucket_shift = token_bits > bucket_bits ? token_bits - bucket_bits : 0;
        plan_.partition_of.resize(std::size_t{1} << std::min(token_bits, bucket_bits));
        std::vector<std::vector<std::uint32_t>> histograms(slices.size());
        run(slices.size(), "plan", [&](unsigned, std::size_t index) {
            std::vector<std::uint32_t> histogram(plan_.partition_of.size(), 0);
            for (std::size_t i = slices[index].begin; i < slices[index].end; ++i) {
                ++histogram[static_cast<std::uint32_t>(tokens[i]) >> plan_.bucket_shift];
            }
            histograms[index] = std::move(histogram);
        });
        group_buckets(plan_, histograms);
        place_slices(plan_, histograms);
    }

    void scatter(std::span<const Token> tokens, Slice slice, std::vector<std::size_t>& next) {
        const unsigned bits = plan_.token_bits;
        for (std::size_t i = slice.begin; i < slice.end; ++i) {
            const auto word = [&](std::size_t at) {
                return static_cast<Key>(static_cast<std::uint32_t>(tokens[at]));
            };
            const Key key = (word(i) << (2 * bits)) | (word(i + 1) << bits) | word(i + 2);
            keys_[next[plan_.partition(tokens[i])]++] = key;
        }
    }

    [[nodiscard]] std::span<Key> partition(std::size_t index) noexcept {
        return {keys_.get() + plan_.starts[index], plan_.starts[index + 1] - plan_.starts[index]};
    }

    [[nodiscard]] Token token_at(Key key, unsigned place) const noexcept {
        const Key mask = (Key{1} << plan_.token_bits) - 1;
        return static_cast<Token>(static_cast<std::uint32_t>((key >> (place * plan_.token_bits)) & mask));
    }

    template <class OnBigram>
    void emit_partition(std::span<const Key> sorted, OnBigram& on_bigram) {
        std::size_t at = 0;
        while (at < sorted.size()) {
            const Key bigram_key = sorted[at] >> plan_.token_bits;
            const Bigram bigram{token_at(sorted[at], 2), token_at(sorted[at], 1)};
            successors_.clear();
            while (at < sorted.size() && sorted[at] >> plan_.token_bits == bigram_key) {
                const Key key = sorted[at];
                const std::size_t start = at;
                while (at < sorted.size() && sorted[at] == key) {
                    ++at;
                }
                if (at - start > options_.largest_count) [[unlikely]] {
                    refuse_count(name_, bigram, token_at(key, 0), at - start, options_.largest_count);
                }
                successors_.push_back({token_at(key, 0), static_cast<std::int32_t>(at - start)});
            }
            report_.add(successors_.size());
            on_bigram(bigram, std::span<const Successor>(successors_));
        }
    }

    std::string name_;
    const CountOptions& options_;
    CountReport& report_;
    Plan plan_;
    std::unique_ptr<Key[]> keys_;
    std::vector<Successor> successors_;
};

// Checks all tokens; the number of bits the largest one needs.
[[nodiscard]] inline unsigned scan_tokens(std::span<const Token> tokens, const std::string& name,
                                          const CountOptions& options) {
    constexpr std::uint64_t most = std::uint64_t{1} << 31;
    const std::uint64_t limit = options.vocabulary_size == 0 ? most : std::min(options.vocabulary_size, most);
    const std::vector<Slice> slices = cut(tokens.size());
    std::vector<Token> largest(slices.size(), 0);
    TaskPool pool(options.jobs, slices.size());
    pool.run(
        [&](unsigned, std::size_t index) {
            largest[index] = checked_maximum(tokens, slices[index], name, limit, options.first_byte);
        },
        [&](std::size_t done) {
            if (options.progress) {
                options.progress("check", done, slices.size());
            }
        });
    const Token maximum = largest.empty() ? 0 : *std::max_element(largest.begin(), largest.end());
    return std::max(1U, static_cast<unsigned>(std::bit_width(static_cast<std::uint32_t>(maximum))));
}

template <class Key, class OnBigram>
void count_with(AlignedBuffer bytes, std::span<const Token> tokens, unsigned token_bits,
                const std::string& name, const CountOptions& options, CountReport& report,
                OnBigram& on_bigram) {
    Counter<Key> counter(name, options, report);
    counter.pack(tokens, token_bits);
    bytes = {};  // the keys hold everything now
    counter.emit(on_bigram);
}

}  // namespace counting

// Static counting of drafting.md over the bytes of a token file: on_bigram(Bigram, std::span<const
// Successor>) in ascending order of the bigrams, successors sorted by token, called on the calling thread.
// InputError with the byte offset of a bad token, or naming the n-gram whose count is too large. `name`
// stands for the file in errors.
template <class OnBigram>
CountReport count_bigrams(AlignedBuffer bytes, const std::string& name, const CountOptions& options,
                          OnBigram&& on_bigram) {
    if (bytes.size() % sizeof(Token) != 0) {
        throw InputError(name, options.first_byte + bytes.size() / sizeof(Token) * sizeof(Token),
                         "the file ends inside a token",
                         "a token file is int32 after int32; it was cut, make it again");
    }
    CountReport report;
    const std::span<const Token> tokens(reinterpret_cast<const Token*>(bytes.data()),
                                        bytes.size() / sizeof(Token));
    report.n_tokens = tokens.size();
    LapTimer watch;
    const unsigned token_bits = counting::scan_tokens(tokens, name, options);
    report.scan_ns = watch.lap();
    if (tokens.size() <= static_ngram) {
        return report;
    }
    if (3 * token_bits <= 64) {
        counting::count_with<std::uint64_t>(std::move(bytes), tokens, token_bits, name, options, report,
                                            on_bigram);
    } else {
        counting::count_with<counting::Wide>(std::move(bytes), tokens, token_bits, name, options, report,
                                             on_bigram);
    }
    return report;
}

}  // namespace ladder
