// The replay of requests, worked by hand: what is learned and when, what is judged, what is forgotten.
#include <string>
#include <vector>

#include "drafting/requests.hpp"
#include "testing.hpp"

namespace {

using ladder::DraftBuffer;
using ladder::History;
using ladder::Request;
using ladder::Token;

// Drafts what followed the last token the last time, over and over; writes down what it is told.
struct Follower {
    static constexpr std::string_view rule = "follower";
    static constexpr ladder::Ties ties = ladder::Ties::token;
    static constexpr ladder::StaticFormat static_format = ladder::StaticFormat::llama;

    void load(const ladder::StaticSource&) {}
    void draft(std::span<const Token> sequence, int n_draft, DraftBuffer& out) {
        Token last = sequence.back();
        while (out.size() < n_draft && last < 10 && next[last] >= 0) {
            out.push(next[last]);
            last = next[last];
        }
    }
    void update(std::span<const Token> sequence) {
        const Token before = sequence[sequence.size() - 2];
        next[before] = sequence.back();
        learned += std::to_string(before) + std::to_string(sequence.back()) + ' ';
    }
    void end_chunk() { learned += "| "; }
    void discard_context() {}
    void discard_dynamic() {
        learned += "forgot ";
        for (Token& token : next) {
            token = -1;
        }
    }
    std::size_t static_bytes() const { return 0; }
    std::size_t memory_bytes() const { return 40; }

    Token next[10] = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
    std::string learned;
};

// The same as a tree: a wrong child first, then what followed, each with its parent.
struct Brancher : Follower {
    static constexpr bool drafts_trees = true;
    void draft(std::span<const Token> sequence, int n_draft, DraftBuffer& out) {
        parents_.clear();
        Token last = sequence.back();
        std::int32_t node = -1;
        while (out.size() + 1 < n_draft && next[last] >= 0) {
            out.push(9);
            parents_.push_back(node);
            out.push(next[last]);
            parents_.push_back(node);
            node = out.size() - 1;
            last = next[last];
        }
    }
    std::span<const std::int32_t> parents() const { return parents_; }
    std::vector<std::int32_t> parents_;
};

struct Outsider : Follower {
    void draft(std::span<const Token>, int, DraftBuffer& out) { out.push(7); }
};

// One that knows conversations: writes down what it is told, drafts the last token again.
struct Listener : Follower {
    using Follower::draft;
    void begin(std::uint64_t session) { learned += "begin" + std::to_string(session) + ' '; }
    void learn(std::span<const Token> prompt) {
        for (const Token token : prompt) {
            learned += std::to_string(last = token);
        }
        learned += ' ';
    }
    void draft(int n_draft, DraftBuffer& out) {
        while (out.size() < n_draft) {
            out.push(last);
        }
        learned += "draft ";
    }
    void accept(Token token) { learned += std::to_string(last = token) + ' '; }
    void close(std::uint64_t session) { learned += "close" + std::to_string(session) + ' '; }
    void start_over() { learned += "anew "; }

    Token last = 0;
};
static_assert(ladder::SessionDrafter<Listener> && !ladder::SessionDrafter<Follower>);

// Two turns of session 0, the second a delta; then session 1.
const std::vector<Request> requests{{0, false, 3, 3}, {0, true, 1, 3}, {1, false, 2, 4}};
const std::vector<Token> tokens{1, 2, 3, /**/ 4, 1, 2, /**/ 5, /**/ 1, 2, 3, /**/ 6, 1, /**/ 2, 3, 4, 8};

template <class D>
ladder::RequestsResult replay(D& drafter, History history, int n_draft = 2) {
    ladder::RequestsOptions options;
    options.n_draft = n_draft;
    options.history = history;
    options.vocab_size = 10;
    return ladder::replay_requests(drafter, std::span<const Request>(requests),
                                   std::span<const Token>(tokens), options);
}

std::string refusal_of(std::vector<Request> wrong) {
    Follower drafter;
    try {
        (void)ladder::replay_requests(drafter, std::span<const Request>(wrong),
                                      std::span<const Token>(tokens), {});
    } catch (const ladder::InputError& error) {
        return error.what();
    }
    return "none";
}

}  // namespace

int main() {
    testing::run("everything is learned once, in order, and committed once a request", [] {
        Follower drafter;
        const auto result = replay(drafter, History::all);
        CHECK(drafter.learned == "12 23 34 41 12 | 25 51 12 23 | 61 12 23 34 48 | ");
        CHECK(result.history_tokens == tokens.size());
        CHECK(result.requests[1].n_context == 7);
        CHECK(result.requests[1].n_learned == 1);
    });
    testing::run("the drafts, counted by hand", [] {
        Follower drafter;
        const auto result = replay(drafter, History::all);
        // Request 0: after 4 nothing is known; after 1 comes 2, then 3, of which 2 is accepted and ends it.
        // Request 1: after 1 (2 5), 2 accepted, 3 given. Request 2: after 2 (3 4), both accepted, 8 given.
        CHECK(dump_text(result) == "0 1:\n0 2: 2 3\n1 1: 2 5\n2 1: 3 4\n");
        CHECK(result.requests[0].calls == 2 && result.requests[0].n_accept == 1);
        CHECK(result.requests[0].hit_calls == 1 && result.requests[0].n_drafted == 2);
        CHECK(result.requests[1].calls == 1 && result.requests[1].n_accept == 1);
        CHECK(result.requests[2].calls == 1 && result.requests[2].n_accept == 2);
        CHECK(result.requests[2].n_response == 3);
    });
    testing::run("a session forgets the ones before, none forgets its own turns and reads them again", [] {
        Follower of_session, alone;
        (void)replay(of_session, History::session);
        CHECK(of_session.learned == "12 23 34 41 12 | 25 51 12 23 | forgot 61 12 23 34 48 | ");
        const auto result = replay(alone, History::none);
        CHECK(alone.learned ==
              "forgot 12 23 34 41 12 | forgot 12 23 34 41 12 25 51 12 23 | forgot 61 12 23 34 48 | ");
        CHECK(result.requests[1].n_learned == 7);
        CHECK(dump_text(result) == "0 1:\n0 2: 2 3\n1 1: 2 5\n2 1:\n2 2:\n2 3:\n");
    });
    testing::run("a drafter of sessions is told of them: a delta goes on, the end closes", [] {
        Listener all, of_session, alone;
        const auto result = replay(all, History::all);
        CHECK(all.learned ==
              "begin1 123 4 draft 1 draft 2 begin1 5 1 draft 2 draft 3 close1 "
              "begin2 61 2 draft 3 draft 4 draft 8 close2 ");
        CHECK(dump_text(result) == "0 1: 4 4\n0 2: 1 1\n1 1: 1 1\n1 2: 2 2\n2 1: 2 2\n2 2: 3 3\n2 3: 4 4\n");
        CHECK(result.history_tokens == tokens.size());
        (void)replay(of_session, History::session);
        CHECK(of_session.learned ==
              "begin1 123 4 draft 1 draft 2 begin1 5 1 draft 2 draft 3 close1 "
              "anew begin2 61 2 draft 3 draft 4 draft 8 close2 ");
        const auto read_again = replay(alone, History::none);
        CHECK(alone.learned ==
              "anew begin1 123 4 draft 1 draft 2 close1 anew begin2 1234125 1 draft 2 draft 3 close2 "
              "anew begin3 61 2 draft 3 draft 4 draft 8 close3 ");
        CHECK(read_again.requests[1].n_learned == 7);
    });
    testing::run("a tree counts its best path", [] {
        Brancher drafter;
        const auto result = replay(drafter, History::all, 4);
        CHECK(dump_text(result) == "0 1:\n0 2: 9 2 9 3\n1 1: 9 2 9 5\n2 1: 9 3 9 4\n");
        CHECK(result.requests[2].n_drafted == 4 && result.requests[2].n_accept == 2);
    });
    testing::run("a token outside the vocabulary is the drafter's fault", [] {
        Outsider drafter;
        ladder::RequestsOptions options;
        options.vocab_size = 7;
        bool thrown = false;
        try {
            (void)ladder::replay_requests(drafter, std::span<const Request>(requests),
                                          std::span<const Token>(tokens), options);
        } catch (const ladder::DrafterError&) {
            thrown = true;
        }
        CHECK(thrown);
    });
    testing::run("what is not a list of requests is refused", [] {
        CHECK(refusal_of({{0, false, 3, 0}}).starts_with("request 0: has no response"));
        CHECK(refusal_of({{0, true, 3, 1}}).starts_with("request 0: continues a session"));
        CHECK(refusal_of({{0, false, 1, 2}}).starts_with("requests: they are of 3 tokens, and there are 16"));
    });
    testing::run("requests without a second token make no call", [] {
        Follower drafter;
        const std::vector<Request> single{{0, false, 0, 1}};
        const std::vector<Token> one{3};
        const auto result = ladder::replay_requests(drafter, std::span<const Request>(single),
                                                    std::span<const Token>(one), {});
        CHECK(result.log.calls() == 0);
        CHECK(drafter.learned == "| ");
    });
    return testing::summary();
}
