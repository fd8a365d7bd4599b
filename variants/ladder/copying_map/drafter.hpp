// Rung 1: llama.cpp's drafting as it was. The inner map is copied at every look-up that finds one, and the
// loops run over copies of its pairs. Everything here is slow on purpose; what is copied, and where, is the
// list in the drafting rule. The later rungs share one template; this one stands alone because the way it
// reads is the whole difference.
#pragma once

#include <unordered_map>
#include <utility>
#include <vector>

#include "base/hash.hpp"
#include "drafting/drafter.hpp"
#include "drafting/llama_rule.hpp"
#include "formats/map_static_cache.hpp"

namespace ladder {

template <class Hash>
class CopyingMap {
public:
    static constexpr std::string_view rule = LlamaRule::name;
    static constexpr Ties ties = Ties::iteration;
    static constexpr StaticFormat static_format = StaticFormat::llama;

    void load(const StaticSource& source) { load_ngrams(source, static_); }

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
            const Ngram ngram = window.ngram(n);
            const auto found = context_.find(ngram);
            if (found == context_.end()) {
                MapSuccessors first;
                first.emplace(token, 1);
                context_.emplace(ngram, first);
                continue;
            }
            const auto counted = found->second.find(token);
            if (counted == found->second.end()) {
                found->second.emplace(token, 1);
            } else {
                ++counted->second;
            }
        }
    }

    void end_chunk() {
        for (const auto& [ngram, successors] : context_) {
            const MapSuccessors copy = successors;
            merge_into(dynamic_, ngram, copy);
        }
        context_.clear();
    }

    void discard_context() { context_.clear(); }
    void discard_dynamic() { dynamic_.clear(); }

    std::size_t static_bytes() const { return bytes_of(static_); }
    std::size_t memory_bytes() const { return static_bytes() + bytes_of(context_) + bytes_of(dynamic_); }

private:
    using NgramMap = std::unordered_map<Ngram, MapSuccessors, Hash>;

    Token draft_one(const Window& window) const {
        MapSuccessors statics;
        const auto found = static_.find(window.ngram(static_ngram));
        if (found != static_.end()) {
            statics = found->second;
        }
        std::vector<Ngram> ngrams;
        for (int n = 1; n <= window.length(); ++n) {
            ngrams.push_back(window.ngram(n));
        }
        Token token = draft_from(context_, ngrams, context_thresholds, statics);
        if (token == null_token) {
            token = draft_from(dynamic_, ngrams, dynamic_thresholds, statics);
        }
        if (token == null_token) {
            token = draft_static(window.ngram(static_ngram));
        }
        return token;
    }

    static Token draft_from(const NgramMap& ngram_map, const std::vector<Ngram>& ngrams,
                            const Thresholds& thresholds, const MapSuccessors& statics) {
        for (std::size_t i = ngrams.size(); i-- > 0;) {
            const auto found = ngram_map.find(ngrams[i]);
            if (found == ngram_map.end()) {
                continue;
            }
            const MapSuccessors successors = found->second;
            std::int64_t best_score = 0, best_count = 0, total = 0;
            Token best = null_token;
            for (const std::pair<Token, std::int32_t> successor : successors) {
                const auto in_static = statics.find(successor.first);
                const std::int64_t count = successor.second;
                const std::int64_t score =
                    count * (in_static == statics.end() ? 1 : static_weight * in_static->second);
                if (score > best_score) {
                    best_score = score;
                    best_count = count;
                    best = successor.first;
                }
                total += count;
            }
            if (thresholds[i].passes(total, best_count)) {
                return best;
            }
        }
        return null_token;
    }

    Token draft_static(const Ngram& bigram) const {
        const auto found = static_.find(bigram);
        if (found == static_.end()) {
            return null_token;
        }
        const MapSuccessors successors = found->second;
        std::int64_t best_count = 0, total = 0;
        Token best = null_token;
        for (const std::pair<Token, std::int32_t> successor : successors) {
            if (successor.second > best_count) {
                best_count = successor.second;
                best = successor.first;
            }
            total += successor.second;
        }
        return static_threshold.passes(total, best_count) ? best : null_token;
    }

    NgramMap context_;
    NgramMap dynamic_;
    NgramMap static_;
};

}  // namespace ladder
