// The drafting rule over any containers that are read by reference: every rung but the first.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>

#include "containers/successors.hpp"
#include "drafting/drafter.hpp"
#include "drafting/llama_rule.hpp"

namespace ladder {

// Whether a container yields its successors in the order that decides ties. Where it does not, equal scores
// go to the smallest token by comparison.
template <class Successors>
inline constexpr bool yields_tie_order = !std::same_as<Successors, UnsortedSuccessors>;

template <class Successors>
bool is_better(std::int64_t score, Token token, std::int64_t best_score, Token best) {
    if constexpr (yields_tie_order<Successors>) {
        return score > best_score;  // the first maximum wins: in a list sorted by token, the smallest token
    } else {
        return score > best_score || (score == best_score && token < best);
    }
}

// What one look-up's successors come to.
struct Choice {
    Token token = null_token;
    std::int64_t count = 0;  // raw count of the winner
    std::int64_t total = 0;  // of all successors
};

// The winner by weighted score. `statics` may be null: then every weight is 1.
template <class Successors, class Statics>
Choice best_weighted(const Successors& successors, const Statics* statics) {
    Choice choice;
    std::int64_t best_score = 0;
    for (const auto& [token, count] : successors) {
        const std::int64_t in_static = statics == nullptr ? 0 : count_of(*statics, token);
        const std::int64_t score = count * (in_static == 0 ? 1 : static_weight * in_static);
        if (is_better<Successors>(score, token, best_score, choice.token)) {
            best_score = score;
            choice.token = token;
            choice.count = count;
        }
        choice.total += count;
    }
    return choice;
}

// The winner by raw count alone.
template <class Successors>
Choice best_raw(const Successors& successors) {
    Choice choice;
    for (const auto& [token, count] : successors) {
        if (is_better<Successors>(count, token, choice.count, choice.token)) {
            choice.token = token;
            choice.count = count;
        }
        choice.total += count;
    }
    return choice;
}

enum class Precheck : bool { off, on };

// `NgramMap`: n-gram -> successors, for the context and the dynamic cache.
// `StaticCache`: load(source), find(Bigram) -> pointer or pointer-like to successors (null if absent),
// bytes(). `Rule`: name, and context(), dynamic(), static_only() -> the thresholds; LlamaRule everywhere a
// variant is measured.
template <class NgramMap, class StaticCache, Ties tie, Precheck precheck, class Rule = LlamaRule>
class LookupDrafter {
public:
    static constexpr std::string_view rule = Rule::name;
    static constexpr Ties ties = tie;
    static constexpr StaticFormat static_format = StaticCache::format;

    void load(const StaticSource& source) { static_.load(source); }

    void draft(std::span<const Token> sequence, int n_draft, DraftBuffer& out) const {
        if (sequence.size() < static_ngram) {
            return;
        }
        Window window(sequence);
        while (out.size() < n_draft) {
            const Token token = draft_one(window);
            if (token == null_token) {
                return;
            }
            out.push(token);
            window.push(token);
        }
    }

    void update(std::span<const Token> sequence) {
        const Token token = sequence.back();
        const Window window(sequence.first(sequence.size() - 1));
        for (int n = 1; n <= window.length(); ++n) {
            increment(context_[window.ngram(n)], token, 1);
        }
    }

    void end_chunk() {
        for (const auto& [ngram, successors] : context_) {
            merge_into(dynamic_, ngram, successors);
        }
        context_.clear();
    }

    void discard_context() { context_.clear(); }
    void discard_dynamic() { dynamic_.clear(); }
    Rule& thresholds() { return rule_; }

    std::size_t static_bytes() const { return static_.bytes(); }
    std::size_t memory_bytes() const { return static_bytes() + bytes_of(context_) + bytes_of(dynamic_); }

    std::uint64_t token_limit() const
        requires requires(const StaticCache& cache) { cache.token_limit(); }
    {
        return static_.token_limit();
    }

    // Throws InputError if the loaded static cache does not match its checksum.
    void verify_static()
        requires requires(StaticCache cache) { cache.verify(); }
    {
        static_.verify();
    }

    // Makes the variant's own static file from llama.cpp's.
    static void convert(const std::string& source, const std::string& target)
        requires requires { StaticCache::convert(source, target); }
    {
        StaticCache::convert(source, target);
    }

private:
    Token draft_one(const Window& window) const {
        const auto found = static_.find(window.bigram());
        const auto* statics = pointer_to(found);
        Token token = draft_from(context_, rule_.context(), window, statics);
        if (token == null_token) {
            token = draft_from(dynamic_, rule_.dynamic(), window, statics);
        }
        if (token == null_token && statics != nullptr) {
            const Choice choice = best_raw(*statics);
            token = rule_.static_only().passes(choice.total, choice.count) ? choice.token : null_token;
        }
        return token;
    }

    template <class Statics>
    static Token draft_from(const NgramMap& ngrams, const Thresholds& thresholds, const Window& window,
                            const Statics* statics) {
        for (int n = window.length(); n >= 1; --n) {
            const auto found = ngrams.find(window.ngram(n));
            if (found == ngrams.end()) {
                continue;
            }
            const Threshold& threshold = thresholds[static_cast<std::size_t>(n - 1)];
            if constexpr (precheck == Precheck::on) {
                const Choice raw = best_raw(found->second);
                if (!threshold.passes(raw.total, raw.count)) {
                    continue;  // no successor can pass where the most frequent one does not
                }
            }
            const Choice choice = best_weighted(found->second, statics);
            if (threshold.passes(choice.total, choice.count)) {
                return choice.token;
            }
        }
        return null_token;
    }

    NgramMap context_;
    NgramMap dynamic_;
    StaticCache static_;
    [[no_unique_address]] Rule rule_;
};

}  // namespace ladder
