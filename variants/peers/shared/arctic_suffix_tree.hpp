// Arctic Inference's suffix trees at their cheapest: its C++ trees without its Python cache around them. One
// tree of all responses so far, and one of the text of the request at hand; both are asked, and the draft
// with the higher score is taken, as its cache does.
#pragma once

#include <suffix_tree.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/check.hpp"
#include "drafting/drafter.hpp"
#include "peers/shared/push_draft.hpp"

namespace ladder {

// What a sweep changes; the values are the library's own defaults. In hundredths: not every compiler
// takes a float as a template argument.
struct ArcticSettings {
    int factor_percent = 100;  // tokens drafted at most per matched token
    int min_percent = 10;      // estimated probability below which a token is not drafted
    bool relearn = false;      // read the whole context again at every turn of a session
};

template <bool tree>
class ArcticSuffixTree {
public:
    static constexpr std::string_view rule = tree ? "suffix_tree_branching" : "suffix_tree";
    static constexpr Ties ties = Ties::token;  // by count, then by which came first
    static constexpr StaticFormat static_format = StaticFormat::none;
    static constexpr bool drafts_trees = tree;

    void configure(ArcticSettings settings) { settings_ = settings; }

    void load(const StaticSource&) {
        throw InputError("load: this drafter has no static cache; leave it out");
    }

    // The context is learned by the request's own tree; responses alone reach the common one. The first
    // `known` tokens are those of the session's last request.
    void begin(std::span<const Token> context, std::size_t known) {
        if (settings_.relearn || known == 0 || known != learned_) {
            own_ = std::make_unique<SuffixTree>(max_depth);
            known = 0;
        }
        own_->extend(0, context.subspan(known));
        learned_ = context.size();
        begun_ = true;
    }

    void draft(std::span<const Token> sequence, int n_draft, DraftBuffer& out) {
        follow(sequence);
        if (n_draft == 0) {
            return;
        }
        const auto context = sequence.last(std::min<std::size_t>(sequence.size(), max_depth));
        Draft of_request = ask(*own_, context, n_draft);
        Draft of_all = ask(*responses_, context, n_draft);
        draft_ = std::move(of_request.score >= of_all.score ? of_request : of_all);
        push_draft(draft_.token_ids, n_draft, out);
    }

    // The parent of each drafted token, as an index into the draft; -1 for the sequence's last token.
    std::span<const std::int32_t> parents() const { return draft_.parents; }

    void update(std::span<const Token> sequence) { follow(sequence); }

    void end_chunk() {
        ++response_;
        begun_ = false;
        if (settings_.relearn) {
            own_.reset();
        }
    }

    void discard_context() {
        responses_->remove(response_);
        own_.reset();
        learned_ = 0;
        begun_ = false;
    }
    void discard_dynamic() {
        responses_ = std::make_unique<SuffixTree>(max_depth);
        own_.reset();
        learned_ = 0;
        response_ = 0;
    }

    std::size_t static_bytes() const { return 0; }
    std::size_t memory_bytes() const {
        return responses_->estimate_memory() + (own_ ? own_->estimate_memory() : 0);
    }

private:
    static constexpr int max_depth = 64;

    Draft ask(SuffixTree& suffixes, std::span<const Token> context, int n_draft) const {
        return suffixes.speculate(context, n_draft, static_cast<float>(settings_.factor_percent) / 100, 0.0F,
                                  static_cast<float>(settings_.min_percent) / 100, tree);
    }

    void follow(std::span<const Token> sequence) {
        if (!begun_) {
            begin({}, 0);
        }
        if (learned_ < sequence.size()) {
            own_->extend(0, sequence.subspan(learned_));
            responses_->extend(response_, sequence.subspan(learned_));
            learned_ = sequence.size();
        }
    }

    ArcticSettings settings_;
    std::unique_ptr<SuffixTree> responses_ = std::make_unique<SuffixTree>(max_depth);
    std::unique_ptr<SuffixTree> own_;
    Draft draft_;
    std::size_t learned_ = 0;
    int response_ = 0;
    bool begun_ = false;
};

}  // namespace ladder
