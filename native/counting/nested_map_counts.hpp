// Ablation of the builder: the counting of llama.cpp's lookup tools, a hash map of hash maps, one look-up in
// each for every token. Only for comparing its speed and its content with count_bigrams().
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/hash.hpp"
#include "base/types.hpp"
#include "formats/llama_cache_file.hpp"

namespace ladder {

class NestedMapCounts {
public:
    void count(std::span<const Token> tokens) {
        for (std::size_t i = static_ngram; i < tokens.size(); ++i) {
            const Ngram ngram(tokens.subspan(i - static_ngram, static_ngram));
            const auto known = counts_.find(ngram);
            if (known == counts_.end()) {
                counts_.emplace(ngram, Inner{{tokens[i], 1}});
                continue;
            }
            const auto successor = known->second.find(tokens[i]);
            if (successor == known->second.end()) {
                known->second.emplace(tokens[i], 1);
            } else {
                ++successor->second;
            }
        }
    }

    // In the iteration order of the maps, as llama.cpp writes its file.
    void write(Sink& sink) const {
        LlamaCacheWriter writer(sink);
        std::vector<Successor> list;
        for (const auto& [ngram, successors] : counts_) {
            list.clear();
            for (const auto& [token, count] : successors) {
                list.push_back({token, count});
            }
            writer.write({ngram.tokens[0], ngram.tokens[1]}, list);
        }
    }

    [[nodiscard]] std::size_t n_bigrams() const noexcept { return counts_.size(); }

private:
    using Inner = std::unordered_map<Token, std::int32_t>;
    std::unordered_map<Ngram, Inner, XorNgramHash> counts_;
};

}  // namespace ladder
