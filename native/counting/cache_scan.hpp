// Reads and checks a whole static cache in bounded memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "base/types.hpp"
#include "base/xxh64.hpp"
#include "counting/bigram_counts.hpp"
#include "counting/progress.hpp"
#include "formats/llama_cache_file.hpp"
#include "formats/sorted_cache.hpp"

namespace ladder {

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
    ReadProgress read(progress, "read", source.size_bytes());
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
        check_vocabulary(path, offset, bigram, largest, vocabulary_size);
        scan.token_limit = std::max(scan.token_limit, largest + 1);
        for (const Successor& successor : successors) {
            scan.total_count += static_cast<std::uint64_t>(successor.count);
            scan.largest_count = std::max(scan.largest_count, successor.count);
        }
        scan.counts.add(successors.size());
        scan.digest.add(bigram, successors);
        read.add(record_bytes(list.size()));
    });
    if (!scan.sorted) {
        spill::check_unique(path, scan.counts.n_bigrams, progress);
    }
    return scan;
}

}  // namespace ladder
