// A static cache in the same kind of map as the context and dynamic caches: rungs 1 to 4.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "containers/successors.hpp"
#include "formats/llama_cache_file.hpp"
#include "formats/static_source.hpp"

namespace ladder {

// Filled in file order, as upstream's loader does: on that order ties depend.
inline MapSuccessors successors_from(std::span<const Successor> file_order, MapSuccessors*) {
    MapSuccessors successors;
    for (const auto& [token, count] : file_order) {
        successors.emplace(token, count);
    }
    return successors;
}

template <class Search>
BasicSortedSuccessors<Search> successors_from(std::span<const Successor> file_order,
                                              BasicSortedSuccessors<Search>*) {
    if (std::is_sorted(file_order.begin(), file_order.end(), by_token)) {
        return BasicSortedSuccessors<Search>(file_order);
    }
    std::vector<Successor> sorted(file_order.begin(), file_order.end());
    std::sort(sorted.begin(), sorted.end(), by_token);
    return BasicSortedSuccessors<Search>(sorted);
}

inline UnsortedSuccessors successors_from(std::span<const Successor> file_order, UnsortedSuccessors*) {
    return UnsortedSuccessors(file_order);
}

// Reads llama.cpp's file into `ngrams`. An inner container is built first and then copied into the map, which
// is upstream's way and leaves the allocator as upstream leaves it.
template <class NgramMap>
void load_ngrams(const StaticSource& source, NgramMap& ngrams) {
    source.require(StaticFormat::llama);
    Source reader = source.open();
    read_llama_cache(reader, [&](Bigram bigram, std::span<const Successor> successors, std::uint64_t offset) {
        const auto inner = successors_from(successors, static_cast<typename NgramMap::mapped_type*>(nullptr));
        const Token key[static_ngram] = {bigram.first, bigram.second};
        const bool inserted = ngrams.try_emplace(Ngram(key), inner).second;
        if (!inserted) {
            throw_repeated_ngram(source.name(), offset, bigram);
        }
    });
}

template <class NgramMap>
class MapStaticCache {
public:
    static constexpr StaticFormat format = StaticFormat::llama;

    void load(const StaticSource& source) { load_ngrams(source, ngrams_); }

    // The bigram's successors, null if it has none.
    const typename NgramMap::mapped_type* find(Bigram bigram) const {
        const Token key[static_ngram] = {bigram.first, bigram.second};
        const auto found = ngrams_.find(Ngram(key));
        return found == ngrams_.end() ? nullptr : &found->second;
    }

    std::size_t bytes() const { return bytes_of(ngrams_); }

private:
    NgramMap ngrams_;
};

}  // namespace ladder
