// Arctic's suffix trees: the adapter against the library's tree, called by hand.
#include <suffix_tree.h>

#include <vector>

#include "../testing.hpp"
#include "peers/arctic_chain/drafter.hpp"
#include "peers/arctic_tree/drafter.hpp"
#include "text.hpp"

namespace {

using ladder::Token;
using Span = std::span<const Token>;

constexpr std::size_t n_prompt = 200;
constexpr int depth = 64, n_draft = 8;

// Two requests one after the other, so that the tree of responses holds something.
const std::vector<Token> first = testing::small_text(900, 3), second = testing::small_text(1100, 4);

testing::Drafts by_hand(bool tree) {
    SuffixTree responses(depth);
    testing::Drafts drafts;
    int number = 0;
    for (const std::vector<Token>& text : {first, second}) {
        SuffixTree own(depth);
        own.extend(0, Span(text).first(n_prompt));
        drafts = testing::along(
            text, n_prompt, n_draft,
            [&](Span sequence, int n) {
                const Span context = sequence.last(std::min<std::size_t>(sequence.size(), depth));
                const Draft a = own.speculate(context, n, 1.0F, 0.0F, 0.1F, tree);
                const Draft b = responses.speculate(context, n, 1.0F, 0.0F, 0.1F, tree);
                return a.score >= b.score ? a.token_ids : b.token_ids;
            },
            [&](Span sequence) {
                own.append(0, sequence.back());
                responses.append(number, sequence.back());
            });
        ++number;
    }
    return drafts;
}

template <class Adapter>
testing::Drafts by_adapter(ladder::ArcticSettings settings = {}) {
    Adapter adapter;
    adapter.configure(settings);
    (void)testing::drafts_of(adapter, first, n_prompt, n_draft);
    adapter.end_chunk();
    return testing::drafts_of(adapter, second, n_prompt, n_draft);
}

}  // namespace

int main() {
    testing::run("a chain", [] {
        CHECK((by_adapter<ladder::ArcticChain>() == by_hand(false)));
        CHECK(testing::drafted_total(by_hand(false)) > 100);
    });
    testing::run("a tree's tokens", [] { CHECK((by_adapter<ladder::ArcticTree>() == by_hand(true))); });
    testing::run("a session's text learned once or at every turn gives the same drafts",
                 [] { CHECK((by_adapter<ladder::ArcticChain>({.relearn = true}) == by_hand(false))); });
    testing::run("a tree's parents come before it", [] {
        ladder::ArcticTree adapter;
        adapter.begin(Span(first).first(n_prompt), 0);
        std::vector<Token> memory(n_draft + 1);
        for (std::size_t length = n_prompt + 1; length < 400; ++length) {
            ladder::DraftBuffer out(memory.data());
            adapter.draft(Span(first).first(length), n_draft, out);
            CHECK(adapter.parents().size() == static_cast<std::size_t>(out.size()));
            for (std::size_t i = 0; i < adapter.parents().size(); ++i) {
                CHECK(adapter.parents()[i] < static_cast<int>(i));
            }
        }
    });
    return testing::summary();
}
