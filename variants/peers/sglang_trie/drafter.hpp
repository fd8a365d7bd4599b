// SGLang's n-gram trie: every suffix of the last tokens is inserted after every call, and a draft is a tree
// of continuations, the longest match first and the most recent child first.
#pragma once

#include <ngram.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "drafting/drafter.hpp"
#include "peers/shared/push_draft.hpp"

namespace ladder {

// Children followed at a node: more where the match is shorter, this many at most.
struct SglangBreadth {
    int most = 10;
};

class SglangTrie {
public:
    static constexpr std::string_view rule = "sglang_trie";
    static constexpr Ties ties = Ties::token;  // by recency: there are none
    static constexpr StaticFormat static_format = StaticFormat::none;
    static constexpr bool drafts_trees = true;

    void configure(SglangBreadth breadth) { breadth_ = breadth; }

    void load(const StaticSource&) {
        throw InputError("load: this drafter has no static cache; leave it out");
    }

    // SGLang does not insert prompts: its trie knows responses alone.
    void begin(std::span<const Token>, std::size_t) { recent_.clear(); }

    void draft(std::span<const Token> sequence, int n_draft, DraftBuffer& out) {
        parents_.clear();
        if (n_draft == 0 || sequence.empty()) {
            return;
        }
        corpus_for(n_draft);
        insert();
        corpus_->synchronize();
        verifying_ = true;
        const ngram::Result tree = corpus_->batchMatch({last_of(sequence)});
        const std::size_t width = tree.token.size();
        push_draft(std::span(tree.token).subspan(1), n_draft, out);  // the first is the sequence's own last
        for (std::size_t i = 1; i < width; ++i) {
            parents_.push_back(parent_of(tree, i, width));
        }
    }

    // The parent of each drafted token, as an index into the draft; -1 for the sequence's last token.
    std::span<const std::int32_t> parents() const { return parents_; }

    void update(std::span<const Token> sequence) {
        if (verifying_) {
            recent_ = last_of(sequence);
        }
    }

    void end_chunk() {
        insert();
        verifying_ = false;
    }
    void discard_context() {
        recent_.clear();
        verifying_ = false;
    }
    void discard_dynamic() {
        discard_context();
        if (corpus_) {
            corpus_->reset();
        }
    }

    std::size_t static_bytes() const { return 0; }
    // The pool of nodes, which is there from the start; what the nodes hold of the heap is not counted.
    std::size_t memory_bytes() const {
        return corpus_ ? capacity * (sizeof(ngram::TrieNode) + sizeof(void*)) : 0;
    }

private:
    static constexpr std::size_t capacity = 1'000'000;
    static constexpr std::size_t max_depth = 18;

    // The number of drafted tokens is fixed when the trie is made.
    void corpus_for(int n_draft) {
        if (corpus_ && n_draft == n_draft_) {
            return;
        }
        ngram::Param parameters{};
        parameters.enable = true;
        parameters.min_bfs_breadth = 1;
        parameters.max_bfs_breadth = static_cast<std::size_t>(breadth_.most);
        parameters.max_trie_depth = max_depth;
        parameters.draft_token_num = static_cast<std::size_t>(n_draft) + 1;
        parameters.match_type = "BFS";
        corpus_ = std::make_unique<ngram::Ngram>(capacity, parameters);
        n_draft_ = n_draft;
    }

    // What the last call yielded, with as much before it as the trie is deep: once a call, as SGLang does
    // after it has verified. What the prompt yielded is not inserted.
    void insert() {
        if (corpus_ && !recent_.empty()) {
            corpus_->asyncInsert({recent_});
            recent_.clear();
        }
    }

    static std::vector<std::int32_t> last_of(std::span<const Token> sequence) {
        const auto last = sequence.last(std::min(sequence.size(), max_depth));
        return {last.begin(), last.end()};
    }

    // The mask's row i holds node i and its ancestors; the nearest one before it is its parent.
    static std::int32_t parent_of(const ngram::Result& tree, std::size_t i, std::size_t width) {
        for (std::size_t j = i; j-- > 0;) {
            if (tree.mask[i * width + j] != 0) {
                return static_cast<std::int32_t>(j) - 1;
            }
        }
        return -1;
    }

    SglangBreadth breadth_;
    std::unique_ptr<ngram::Ngram> corpus_;
    std::vector<std::int32_t> parents_;
    int n_draft_ = 0;
    std::vector<std::int32_t> recent_;  // the end of the sequence, not yet inserted
    bool verifying_ = false;            // a draft has been made: what follows is its verification
};

}  // namespace ladder
