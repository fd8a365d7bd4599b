// llama.cpp's drafters without a model: each adapter against the library's own functions, called by hand.
#include <ngram-cache.h>
#include <ngram-map.h>
#include <ngram-mod.h>

#include <algorithm>
#include <vector>

#include "../testing.hpp"
#include "peers/llama_ngram_cache/drafter.hpp"
#include "peers/llama_ngram_map_k/drafter.hpp"
#include "peers/llama_ngram_map_k4v/drafter.hpp"
#include "peers/llama_ngram_mod/drafter.hpp"
#include "peers/llama_ngram_simple/drafter.hpp"
#include "text.hpp"

namespace {

using ladder::Token;
using testing::Drafts;
using Span = std::span<const Token>;

constexpr std::size_t n_prompt = 300;
constexpr int n_draft = 8;
const std::vector<Token> text = testing::small_text(2000, 7);

std::vector<Token> without_last(Span sequence) {
    return {sequence.begin(), sequence.end() - 1};
}

std::vector<Token> cut(std::vector<Token> draft, int n) {
    draft.resize(std::min(draft.size(), static_cast<std::size_t>(n)));
    return draft;
}

Drafts simple_by_hand() {
    return testing::along(
        text, n_prompt, n_draft,
        [](Span sequence, int n) {
            return cut(common_ngram_simple_draft({4, 48}, without_last(sequence), sequence.back()), n);
        },
        [](Span) {});
}

Drafts map_by_hand(bool key_only) {
    common_ngram_map map(4, 48, key_only, 1);
    common_ngram_map_begin(map, {text.begin(), text.begin() + n_prompt});
    std::vector<Token> last;
    std::size_t drafted_at = 0;
    return testing::along(
        text, n_prompt, n_draft,
        [&](Span sequence, int n) {
            if (!last.empty()) {  // what the last draft was worth
                std::size_t accepted = 0;
                while (accepted < last.size() && drafted_at + accepted < sequence.size() &&
                       last[accepted] == sequence[drafted_at + accepted]) {
                    ++accepted;
                }
                common_ngram_map_accept(map, static_cast<std::uint16_t>(accepted));
            }
            std::vector<Token> draft;
            common_ngram_map_draft(map, without_last(sequence), sequence.back(), draft);
            last = cut(draft, n);
            drafted_at = sequence.size();
            return last;
        },
        [](Span) {});
}

// As long as the table is not dropped and no block of 32 new tokens is full, the prompt is all it knows.
std::vector<Token> mod_by_hand(Span prompt, Token sampled, int n) {
    constexpr std::size_t n_match = 4;
    common_ngram_mod table(n_match, std::size_t{4} * 1024 * 1024);
    for (std::size_t i = 0; i + n_match < prompt.size(); ++i) {
        table.add(prompt.data() + i);
    }
    std::vector<Token> chain(prompt.end() - (n_match - 1), prompt.end());
    chain.push_back(sampled);
    for (int i = 0; i < n; ++i) {
        const Token token = table.get(chain.data() + i);
        if (token == common_ngram_mod::EMPTY) {
            break;
        }
        chain.push_back(token);
    }
    return {chain.begin() + n_match, chain.end()};
}

Drafts cache_by_hand() {
    common_ngram_cache context, dynamic, statics;
    std::vector<Token> inp(text.begin(), text.begin() + n_prompt);
    common_ngram_cache_update(context, LLAMA_NGRAM_MIN, LLAMA_NGRAM_MAX, inp, static_cast<int>(n_prompt) - 1,
                              false);
    return testing::along(
        text, n_prompt, n_draft,
        [&](Span sequence, int n) {
            std::vector<Token> draft{sequence.back()};
            common_ngram_cache_draft(inp, draft, n, LLAMA_NGRAM_MIN, LLAMA_NGRAM_MAX, context, dynamic,
                                     statics);
            return std::vector<Token>(draft.begin() + 1, draft.end());
        },
        [&](Span sequence) {
            inp.push_back(sequence.back());
            common_ngram_cache_update(context, LLAMA_NGRAM_MIN, LLAMA_NGRAM_MAX, inp, 1, false);
        });
}

// The ladder's drafters are told token by token.
struct TokenByToken : ladder::LlamaNgramCache {
    void begin(Span context, std::size_t) {
        for (std::size_t length = 2; length <= context.size(); ++length) {
            update(context.first(length));
        }
    }
};

template <class Adapter>
void check_equal(const Drafts& wanted) {
    Adapter adapter;
    if constexpr (requires { adapter.configure({4, 48}); }) {
        adapter.configure({4, 48});
    }
    CHECK(testing::drafts_of(adapter, text, n_prompt, n_draft) == wanted);
    CHECK(testing::drafted_total(wanted) > 100);
}

}  // namespace

int main() {
    testing::run("ngram-cache", [] { check_equal<TokenByToken>(cache_by_hand()); });
    testing::run("ngram-simple", [] { check_equal<ladder::LlamaNgramSimple>(simple_by_hand()); });
    testing::run("ngram-map-k", [] { check_equal<ladder::LlamaNgramMapK>(map_by_hand(true)); });
    testing::run("ngram-map-k4v", [] { check_equal<ladder::LlamaNgramMapK4v>(map_by_hand(false)); });
    testing::run("ngram-mod", [] {
        for (std::size_t length = 100; length < 400; ++length) {
            const Span prompt = Span(text).first(length);
            ladder::LlamaNgramMod adapter;
            adapter.configure({4, 0});
            std::vector<Token> memory(n_draft + 1);
            ladder::DraftBuffer out(memory.data());
            adapter.begin(prompt, 0);
            adapter.draft(Span(text).first(length + 1), n_draft, out);
            memory.resize(static_cast<std::size_t>(out.size()));
            CHECK(memory == mod_by_hand(prompt, text[length], n_draft));
        }
    });
    testing::run("a draft of nothing asks nothing", [] {
        ladder::LlamaNgramSimple adapter;
        ladder::DraftBuffer out;
        adapter.draft(Span(text).first(1), 0, out);
        CHECK(out.size() == 0);
    });
    return testing::summary();
}
