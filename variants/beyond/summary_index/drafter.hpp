// Beyond the ladder: every n-gram carries a summary of its successors, and most drafts are read from
// summaries alone. README.md in this folder explains the design.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "base/hash.hpp"
#include "base/huge_pages.hpp"
#include "beyond/summary_index/context_table.hpp"
#include "beyond/summary_index/ngram_table.hpp"
#include "beyond/summary_index/passing_nodes.hpp"
#include "beyond/summary_index/static_builder.hpp"
#include "beyond/summary_index/static_file.hpp"
#include "drafting/drafter.hpp"
#include "drafting/llama_rule.hpp"

namespace ladder {

namespace summary {

// The n-grams that end a sequence, with their hashes: what a draft looks up is what the next update counts.
struct Suffixes {
    std::array<Ngram, ngram_max> keys;
    std::array<std::uint64_t, ngram_max> hashes;
    int longest = 0;  // the sequence has n-grams of up to this length

    void set(const Window& window) noexcept {
        longest = window.length();
        const Token a = window[0], b = window[1], c = window[2], d = window[3];
        keys[0].tokens = {d, null_token, null_token, null_token};
        keys[1].tokens = {c, d, null_token, null_token};
        keys[2].tokens = {b, c, d, null_token};
        keys[3].tokens = {a, b, c, d};
        for (std::size_t i = 0; i < keys.size(); ++i) {  // all four, needed or not: no branch, four in flight
            hashes[i] = AvalanchingNgramHash{}(keys[i]);
        }
    }
};

// The context cache's nodes of a sequence's suffixes. Whatever followed an n-gram followed its own suffixes
// too, so the nodes that exist are those of the lengths 1 to `known`.
struct ContextNodes {
    std::array<const Node*, ngram_max> nodes;
    int known = 0;

    void find(const ContextTable& context, const Suffixes& suffixes) noexcept {
        known = 0;
        while (known < suffixes.longest) {
            const auto i = static_cast<std::size_t>(known);
            nodes[i] = context.find(suffixes.keys[i], suffixes.hashes[i]);
            if (nodes[i] == nullptr) {
                break;
            }
            ++known;
        }
    }
};

// The static cache's say on one bigram; its list is opened only when something depends on it.
class StaticWeights {
public:
    StaticWeights(const StaticFile& file, Bigram bigram) : file_(file), entry_(file.find(bigram)) {}

    [[nodiscard]] bool absent() const noexcept { return !entry_.present(); }
    [[nodiscard]] bool single() const noexcept { return entry_.single(); }
    [[nodiscard]] Token top() const noexcept { return entry_.top(); }
    [[nodiscard]] Token verdict() const noexcept { return entry_.verdict(); }
    [[nodiscard]] SuccessorList list() const { return file_.list(entry_); }
    [[nodiscard]] std::int64_t single_count() const noexcept {
        return static_cast<std::int64_t>(entry_.value());
    }

private:
    const StaticFile& file_;
    StaticEntry entry_;
};

[[nodiscard]] inline std::int64_t weight_of(std::int64_t static_count) noexcept {
    return static_count == 0 ? 1 : static_weight * static_count;
}

// A node with several successors whose best passes the threshold: does it win the weighted count as well? The
// bounds decide most cases without a look at the static list, and all but a few of the rest with one.
class WeightedContest {
public:
    WeightedContest(const Node& node, const CountedList& list, const Threshold& threshold,
                    const StaticWeights& statics)
        : node_(node), list_(list), threshold_(threshold), statics_(statics) {}

    // The drafted token, null if the winner does not pass the threshold.
    [[nodiscard]] Token winner() const {
        if (statics_.absent()) {
            return node_.best;  // all weights are 1
        }
        return statics_.single() ? against_single() : against_list(statics_.list());
    }

private:
    // Only one token has weight.
    [[nodiscard]] Token against_single() const {
        const std::int64_t weight = weight_of(statics_.single_count());
        const Token favoured = statics_.top();
        if (favoured == node_.best) {
            return node_.best;
        }
        const Successor* entry = list_.find(favoured);
        if (entry == nullptr) {
            return node_.best;
        }
        return beats(entry->count * weight, favoured, node_.best_count, node_.best) ? if_passing(*entry)
                                                                                    : node_.best;
    }

    [[nodiscard]] Token against_list(const SuccessorList& statics) const {
        const std::int64_t top_weight = weight_of(statics.top_count());
        const std::int64_t second = list_.second_count;
        if (statics_.top() == node_.best && second < node_.best_count) {
            return node_.best;  // highest count and highest weight
        }
        if (node_.best_count > second * top_weight) {
            return node_.best;  // even without weight
        }
        const std::int64_t best_weight = weight_of(statics.count_of(node_.best));
        const std::int64_t best_score = node_.best_count * best_weight;
        if (best_score > second * top_weight) {
            return node_.best;
        }
        return scan(statics, best_score, top_weight);
    }

    [[nodiscard]] Token scan(const SuccessorList& statics, std::int64_t best_score,
                             std::int64_t top_weight) const {
        // Where no other successor could pass the threshold, the first one that beats the best settles it.
        const bool other_may_pass = threshold_.passes(node_.total, list_.second_count);
        std::int64_t winning_score = best_score;
        Successor winner{node_.best, static_cast<std::int32_t>(node_.best_count)};
        for (const Successor& entry : list_.entries) {
            if (entry.count * top_weight < winning_score || entry.token == winner.token) {
                continue;
            }
            const std::int64_t score = entry.count * weight_of(statics.count_of(entry.token));
            if (beats(score, entry.token, winning_score, winner.token)) {
                if (!other_may_pass) {
                    return null_token;
                }
                winning_score = score;
                winner = entry;
            }
        }
        return if_passing(winner);
    }

    static bool beats(std::int64_t score, Token token, std::int64_t other_score, Token other) noexcept {
        return score > other_score || (score == other_score && token < other);
    }
    [[nodiscard]] Token if_passing(const Successor& winner) const noexcept {
        return threshold_.passes(node_.total, winner.count) ? winner.token : null_token;
    }

    const Node& node_;
    const CountedList& list_;
    const Threshold& threshold_;
    const StaticWeights& statics_;
};

}  // namespace summary

// With huge pages the static file is read into memory instead of mapped.
template <HugePages huge_pages = HugePages::off>
class SummaryIndex {
public:
    static constexpr std::string_view rule = LlamaRule::name;
    static constexpr Ties ties = Ties::token;
    static constexpr StaticFormat static_format = StaticFormat::summary;

    // A llama.cpp cache is converted in memory first: handy in tests and for users, never what a run
    // measures.
    void load(const StaticSource& source) {
        if (source.format() == StaticFormat::llama) {
            Source reader = source.open();
            MemorySink sink;
            summary::build_static_file(reader, sink);
            static_ = summary::StaticFile::from_bytes(sink.take(), source.name());
            return;
        }
        source.require(static_format);
        if (source.in_memory()) {
            static_ = summary::StaticFile::from_bytes(source.bytes(), source.name());
        } else if (huge_pages == HugePages::on) {
            static_ = summary::StaticFile::read(source.name(), huge_page_hook(huge_pages));
        } else {
            static_ = summary::StaticFile::map(source.name());
        }
    }

    static void convert(const std::string& source, const std::string& target) {
        Source reader = Source::from_file(source);
        AtomicFile file(target);
        summary::build_static_file(reader, file);
        file.commit();
    }
    void verify_static() const { static_.verify(); }
    [[nodiscard]] StaticFigures static_figures() const noexcept {
        return {static_.header().n_bigrams, static_.header().n_successors};
    }
    void prefault_static() const noexcept { static_.prefault(); }

    void draft(std::span<const Token> sequence, int n_draft, DraftBuffer& out) {
        if (sequence.size() < static_ngram || n_draft < 1) {
            return;
        }
        Window window(sequence);
        follow(sequence.size(), window);
        find_here();
        Token token = draft_one(window, here_, here_nodes_);
        summary::Suffixes ahead;
        summary::ContextNodes ahead_nodes;
        while (token != null_token) {
            out.push(token);
            if (out.size() == n_draft) {
                return;
            }
            window.push(token);
            prefetch_static(window);
            ahead.set(window);
            ahead_nodes.find(context_, ahead);
            token = draft_one(window, ahead, ahead_nodes);
        }
    }

    void update(std::span<const Token> sequence) {
        follow(sequence.size() - 1, Window(sequence.first(sequence.size() - 1)));
        if (context_.reserve(ngram_max, hash_of)) {
            here_found_ = false;
        }
        find_here();
        const Token token = sequence.back();
        for (int i = 0; i < here_nodes_.known; ++i) {
            context_.count(*here_nodes_.nodes[static_cast<std::size_t>(i)], token);
        }
        for (auto i = static_cast<std::size_t>(here_nodes_.known);
             i < static_cast<std::size_t>(here_.longest); ++i) {
            context_.insert(here_.keys[i], here_.hashes[i], token);
        }
        follow(sequence.size(), Window(sequence));
    }

    void end_chunk() {
        dynamic_.reserve(context_.size(), hash_of);
        constexpr std::size_t ahead = 16;
        for (std::size_t i = 0; i < context_.size(); ++i) {
            if (i + ahead < context_.size()) {
                dynamic_.prefetch(hash_of(context_[i + ahead].key));
            }
            const summary::Node& node = context_[i];
            const std::uint64_t hash = hash_of(node.key);
            const Threshold& threshold =
                dynamic_thresholds[static_cast<std::size_t>(length_of(node.key) - 1)];
            summary::Node& sum = dynamic_.find_or_insert(node.key, hash);
            const bool passed = threshold.passes(sum.total, sum.best_count);
            dynamic_.merge(sum, context_.lists(), node);
            if (passed || threshold.passes(sum.total, sum.best_count)) {
                passing_.put(sum, hash, hash_of);
            }
        }
        context_.clear();
        here_length_ = nowhere;
    }

    void discard_context() {
        context_.clear();
        here_length_ = nowhere;
    }
    void discard_dynamic() {
        dynamic_.clear();
        passing_.clear();
    }

    std::uint64_t token_limit() const { return static_.header().token_limit; }
    std::size_t static_bytes() const { return static_.bytes(); }
    std::size_t memory_bytes() const {
        return static_bytes() + context_.bytes() + dynamic_.bytes() + passing_.bytes();
    }

private:
    static constexpr std::size_t nowhere = ~std::size_t{0};
    static constexpr unsigned first_context_bits = 10;
    static constexpr unsigned first_dynamic_bits = 10;

    static std::uint64_t hash_of(const Ngram& key) { return AvalanchingNgramHash{}(key); }

    static int length_of(const Ngram& key) {
        return static_cast<int>(std::find(key.tokens.begin(), key.tokens.end(), null_token) -
                                key.tokens.begin());
    }

    // Makes `here_` the suffixes of a sequence of this length. Within a chunk the caller's sequence only
    // grows, so the length tells whether they are known already.
    void follow(std::size_t length, const Window& window) {
        if (here_length_ == length) {
            return;
        }
        here_length_ = length;
        here_found_ = false;
        prefetch_static(window);
        here_.set(window);
    }

    void find_here() {
        if (!here_found_) {
            here_nodes_.find(context_, here_);
            here_found_ = true;
        }
    }

    void prefetch_static(const Window& window) const {
        if (window.length() >= static_ngram) {
            static_.prefetch(window.bigram());
        }
    }

    Token draft_one(const Window& window, const summary::Suffixes& suffixes,
                    const summary::ContextNodes& context) const {
        const Bigram bigram = window.bigram();
        for (int n = context.known; n >= 1; --n) {
            const auto i = static_cast<std::size_t>(n - 1);
            const Token token = choose(context_.lists(), *context.nodes[i], context_thresholds[i], bigram);
            if (token != null_token) {
                return token;
            }
        }
        for (int n = suffixes.longest; n >= 1; --n) {
            const auto i = static_cast<std::size_t>(n - 1);
            const summary::Node* node = passing_.find(suffixes.keys[i], suffixes.hashes[i]);
            if (node != nullptr) {
                const Token token = choose(dynamic_.lists(), *node, dynamic_thresholds[i], bigram);
                if (token != null_token) {
                    return token;
                }
            }
        }
        return static_.find(bigram).verdict();
    }

    Token choose(const summary::NodeLists& lists, const summary::Node& node, const Threshold& threshold,
                 Bigram bigram) const {
        if (!threshold.passes(node.total, node.best_count)) {
            return null_token;  // the precheck, from the summary
        }
        if (node.single()) {
            return node.best;
        }
        const summary::StaticWeights statics(static_, bigram);
        return summary::WeightedContest(node, lists.of(node), threshold, statics).winner();
    }

    summary::StaticFile static_;
    summary::ContextTable context_{first_context_bits};
    summary::NgramTable dynamic_{first_dynamic_bits};
    summary::PassingNodes passing_;
    summary::Suffixes here_;
    summary::ContextNodes here_nodes_;
    std::size_t here_length_ = nowhere;
    bool here_found_ = false;  // whether here_nodes_ are those of here_
};

}  // namespace ladder
