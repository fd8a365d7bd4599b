// Merges sorted static caches, one buffer an input: the counts of an n-gram are added.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <queue>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "base/types.hpp"
#include "counting/bigram_counts.hpp"
#include "counting/progress.hpp"
#include "formats/llama_cache_file.hpp"
#include "formats/sorted_cache.hpp"

namespace ladder {

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
        ReadProgress read(options_.progress, "merge", total_bytes_);
        while (!queue_.empty()) {
            const std::uint64_t key = queue_.top().first;
            const std::size_t first = pop();
            const Bigram bigram = readers_[first].bigram();
            std::span<const Successor> sum = readers_[first].successors();
            read.add(record_bytes(sum.size()));
            group_.assign(1, first);
            while (!queue_.empty() && queue_.top().first == key) {
                const std::size_t other = pop();
                if (options_.unique) {
                    throw RepeatedNgram(bigram);
                }
                read.add(record_bytes(readers_[other].successors().size()));
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
    const CountReport report = merger.run([&](Bigram bigram, auto list) { writer.write(bigram, list); });
    file.commit();
    return report;
}

}  // namespace ladder
