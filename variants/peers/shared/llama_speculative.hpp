// llama.cpp's drafters without a model, driven as its server drives them: one object that is told when a
// generation begins, asked for a draft, and told how much of it was accepted. What differs between the
// variants that use this is which drafter is asked for and with which sizes.
#pragma once

#include <speculative.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/check.hpp"
#include "drafting/drafter.hpp"
#include "peers/shared/push_draft.hpp"

namespace ladder {

struct LlamaSpeculativeDeleter {
    void operator()(common_speculative* object) const { common_speculative_free(object); }
};

// Kind: a type with `rule`, `table_bytes`, the `Sizes` that can be set (their own are the defaults), and
// `apply(common_params_speculative&, Sizes)`, which chooses the drafter.
template <class Kind>
class LlamaSpeculative {
public:
    using Sizes = typename Kind::Sizes;
    static constexpr std::string_view rule = Kind::rule;
    static constexpr Ties ties = Ties::token;  // decided by position: there are no ties
    static constexpr StaticFormat static_format = StaticFormat::none;

    LlamaSpeculative() { configure({}); }

    void configure(Sizes sizes) {
        Kind::apply(parameters_, sizes);
        start();
    }

    void load(const StaticSource&) {
        throw InputError("load: this drafter has no static cache; leave it out");
    }

    // A generation starts: `context` is all that the model has read. How much of it is new does not matter.
    void begin(std::span<const Token> context, std::size_t) {
        tokens_.assign(context.begin(), context.end());
        common_speculative_begin(object_.get(), 0, tokens_);
        begun_ = true;
    }

    void draft(std::span<const Token> sequence, int n_draft, DraftBuffer& out) {
        if (sequence.empty() || n_draft == 0) {
            return;
        }
        settle(sequence);
        follow(sequence);
        draft_.clear();
        common_speculative_get_draft_params(object_.get(), 0) = {
            true, n_draft, static_cast<llama_pos>(tokens_.size()), sequence.back(), &tokens_, &draft_};
        common_speculative_draft(object_.get());
        drafted_at_ = sequence.size();
        push_draft(draft_, n_draft, out);
    }

    // Upstream reads the sequence itself when it drafts; there is nothing to count.
    void update(std::span<const Token> sequence) { follow(sequence); }

    void end_chunk() {
        settle(tokens_);
        tokens_.clear();
        draft_.clear();
        begun_ = false;
    }

    void discard_context() { end_chunk(); }
    // Upstream has no way to forget but to start again.
    void discard_dynamic() {
        object_.reset();
        start();
    }

    std::size_t static_bytes() const { return 0; }
    std::size_t memory_bytes() const { return tokens_.capacity() * sizeof(Token) + Kind::table_bytes; }

private:
    void start() { object_.reset(common_speculative_init(parameters_, 1)); }

    // Upstream takes the text without its last token, and that token apart.
    void follow(std::span<const Token> sequence) {
        if (!begun_) {
            begin(sequence.first(sequence.size() - 1), 0);
        }
        for (std::size_t i = tokens_.size(); i + 1 < sequence.size(); ++i) {
            tokens_.push_back(sequence[i]);
        }
    }

    // Tells upstream how much of the last draft came true. Its server does so only where there was a draft.
    void settle(std::span<const Token> sequence) {
        if (draft_.empty()) {
            return;
        }
        std::size_t accepted = 0;
        while (accepted < draft_.size() && drafted_at_ + accepted < sequence.size() &&
               draft_[accepted] == sequence[drafted_at_ + accepted]) {
            ++accepted;
        }
        common_speculative_accept(object_.get(), 0, static_cast<std::uint16_t>(accepted));
        draft_.clear();
    }

    common_params_speculative parameters_;
    std::unique_ptr<common_speculative, LlamaSpeculativeDeleter> object_;
    std::vector<Token> tokens_;
    std::vector<Token> draft_;
    std::size_t drafted_at_ = 0;
    bool begun_ = false;
};

// The look-up drafters' sizes: an n-gram of `size_n` tokens is looked up, `size_m` tokens that followed it
// are taken.
struct LlamaLookupSizes {
    std::uint16_t size_n = 12;
    std::uint16_t size_m = 48;

    void apply(common_params_speculative_ngram_map& parameters) const {
        parameters.size_n = size_n;
        parameters.size_m = size_m;
    }
};

}  // namespace ladder
