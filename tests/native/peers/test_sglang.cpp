// SGLang's trie: the adapter against the library's own object, called by hand.
#include <ngram.h>

#include <algorithm>
#include <vector>

#include "../testing.hpp"
#include "peers/sglang_trie/drafter.hpp"
#include "text.hpp"

namespace {

using ladder::Token;
using Span = std::span<const Token>;

constexpr std::size_t n_prompt = 50, depth = 18;
constexpr int n_draft = 8;
const std::vector<Token> text = testing::small_text(600, 5);

std::vector<std::int32_t> last_of(Span sequence) {
    const Span last = sequence.last(std::min(sequence.size(), depth));
    return {last.begin(), last.end()};
}

testing::Drafts by_hand() {
    ngram::Param parameters{};
    parameters.enable = true;
    parameters.min_bfs_breadth = 1;
    parameters.max_bfs_breadth = 10;
    parameters.max_trie_depth = depth;
    parameters.draft_token_num = n_draft + 1;
    parameters.match_type = "BFS";
    ngram::Ngram corpus(1'000'000, parameters);
    bool verified = false;
    return testing::along(
        text, n_prompt, n_draft,
        [&](Span sequence, int) {
            if (verified) {
                corpus.asyncInsert({last_of(sequence)});
                corpus.synchronize();
            }
            verified = true;
            const ngram::Result tree = corpus.batchMatch({last_of(sequence)});
            return std::vector<Token>(tree.token.begin() + 1, tree.token.end());
        },
        [](Span) {});
}

}  // namespace

int main() {
    testing::run("the drafts", [] {
        ladder::SglangTrie adapter;
        CHECK(testing::drafts_of(adapter, text, n_prompt, n_draft) == by_hand());
    });
    testing::run("a draft is as long as asked for, with parents before their children", [] {
        ladder::SglangTrie adapter;
        adapter.begin(Span(text).first(n_prompt), 0);
        std::vector<Token> memory(n_draft + 1);
        for (std::size_t length = n_prompt + 1; length < 400; ++length) {
            ladder::DraftBuffer out(memory.data());
            adapter.draft(Span(text).first(length), n_draft, out);
            CHECK(out.size() == n_draft);
            for (std::size_t i = 0; i < adapter.parents().size(); ++i) {
                CHECK(adapter.parents()[i] < static_cast<int>(i));
            }
            adapter.update(Span(text).first(length + 1));
        }
    });
    return testing::summary();
}
