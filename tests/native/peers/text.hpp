// A small text with much repetition, and the loop of one request over it: what every peer's test drives.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "drafting/drafter.hpp"

namespace testing {

// Phrases of a few tokens that come again in a random order, with a slip here and there.
inline std::vector<ladder::Token> small_text(std::size_t length, std::uint32_t seed) {
    std::uint32_t state = seed;
    const auto next = [&](std::uint32_t below) {
        state = state * 1664525U + 1013904223U;
        return (state >> 8) % below;
    };
    std::vector<ladder::Token> text;
    while (text.size() < length) {
        const auto phrase = static_cast<ladder::Token>(next(6));
        for (ladder::Token i = 0; i < 7 + phrase; ++i) {
            text.push_back(next(25) == 0 ? static_cast<ladder::Token>(next(60)) : phrase * 10 + i);
        }
    }
    text.resize(length);
    return text;
}

using Drafts = std::vector<std::vector<ladder::Token>>;

// Drafts along text[n_prompt..]. `step(sequence, n_draft)` drafts; `grown(sequence)` is told each new token.
template <class Step, class Grown>
Drafts along(std::span<const ladder::Token> text, std::size_t n_prompt, int n_draft, Step&& step,
             Grown&& grown) {
    Drafts drafts;
    std::size_t length = n_prompt + 1;
    grown(text.first(length));
    while (length < text.size()) {
        std::vector<ladder::Token> draft = step(text.first(length), n_draft);
        std::size_t accepted = 0;
        while (accepted < draft.size() && length + accepted < text.size() &&
               draft[accepted] == text[length + accepted]) {
            ++accepted;
        }
        for (std::size_t i = 0; i <= accepted && length < text.size(); ++i) {
            grown(text.first(++length));
        }
        drafts.push_back(std::move(draft));
    }
    return drafts;
}

// The same through an adapter.
template <class D>
Drafts drafts_of(D& drafter, std::span<const ladder::Token> text, std::size_t n_prompt, int n_draft) {
    drafter.begin(text.first(n_prompt), 0);
    return along(
        text, n_prompt, n_draft,
        [&](std::span<const ladder::Token> sequence, int n) {
            std::vector<ladder::Token> memory(static_cast<std::size_t>(n) + 1);
            ladder::DraftBuffer out(memory.data());
            drafter.draft(sequence, n, out);
            memory.resize(static_cast<std::size_t>(out.size()));
            return memory;
        },
        [&](std::span<const ladder::Token> sequence) { drafter.update(sequence); });
}

inline std::size_t drafted_total(const Drafts& drafts) {
    std::size_t total = 0;
    for (const auto& draft : drafts) {
        total += draft.size();
    }
    return total;
}

}  // namespace testing
