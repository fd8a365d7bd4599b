// The replay of requests: prompts and the responses that models gave to them, one after the other. Beside
// replay.hpp, on the same clock; a prompt is learned and never drafted, a response is drafted from its second
// token on, since reading the prompt already yields the first.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/check.hpp"
#include "base/clock.hpp"
#include "drafting/drafter.hpp"
#include "drafting/replay.hpp"

namespace ladder {

// What a request may learn from, besides its own context.
enum class History : std::uint8_t {
    all,      // everything before it
    session,  // what its own session said before
    none,     // nothing
};

// One request. Its tokens lie in one array with all others': the prompt, then the response.
struct Request {
    std::uint32_t session;  // requests of a session follow each other
    bool continues;         // the prompt goes on where the session's last response ended
    std::size_t n_prompt;
    std::size_t n_response;
};

struct RequestsOptions {
    int n_draft = 8;
    History history = History::all;
    Token vocab_size = 0;  // 0: not known, and then not checked
    std::function<void()> check_interrupt = [] {
    };  // throws to stop the replay; called outside the timed sections
};

// A drafter did what no drafter may: its run is failed, its input was sound.
class DrafterError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

// What one request came to.
struct RequestFigures {
    std::size_t n_context = 0;   // tokens before the response
    std::size_t n_learned = 0;   // of them, those that the drafter was given now
    std::size_t n_response = 0;  // tokens after the first
    std::uint64_t calls = 0;
    std::uint64_t hit_calls = 0;
    std::uint64_t n_drafted = 0;
    std::uint64_t n_accept = 0;
};

// Time in one kind of work, with its distribution.
struct PhaseTime {
    Clock::Ticks total = 0;
    LatencyHistogram histogram;

    void add(Clock::Ticks ticks) {
        total += ticks;
        histogram.add(ticks);
    }
};

struct RequestsResult {
    std::vector<RequestFigures> requests;
    std::vector<std::uint32_t> accepted;  // tokens accepted, by call
    PhaseTime learn;                      // a request's prompt
    PhaseTime draft;                      // one call
    PhaseTime update;                     // all that one call yielded
    PhaseTime commit;                     // the end of a request
    std::uint64_t history_tokens = 0;     // learned since the drafter last forgot
    std::size_t memory_bytes = 0;         // held at the end
    std::string clock_name;
    double clock_ns_per_reading = 0;
    double ns_per_tick = 1;
    DraftLog log;
};

// A drafter that is told when a request begins, with all that the model has read by then, rather than being
// updated token by token. The first `known` tokens are the session's, which it has seen.
template <class D>
concept Beginning =
    requires(D drafter, std::span<const Token> context, std::size_t known) { drafter.begin(context, known); };

// A drafter that knows conversations. It is told which one speaks (begin), what the user says there (learn),
// every token of the answer (accept), and that a conversation is over (close); start_over() forgets
// everything.
template <class D>
concept SessionDrafter =
    requires(D drafter, std::uint64_t session, std::span<const Token> prompt, Token token, DraftBuffer& out) {
        drafter.begin(session);
        drafter.learn(prompt);
        drafter.draft(1, out);
        drafter.accept(token);
        drafter.close(session);
        drafter.start_over();
    };

// A drafter whose drafts are trees says `drafts_trees = true`: parents() gives each drafted token's parent,
// an earlier index of the draft, or -1 for the last token of the sequence.
template <class D>
concept TreeDrafting = D::drafts_trees && requires(const D& drafter) {
    { drafter.parents() } -> std::convertible_to<std::span<const std::int32_t>>;
};

inline void check_requests(std::span<const Request> requests, std::size_t n_tokens) {
    std::size_t end = 0;
    for (std::size_t i = 0; i < requests.size(); ++i) {
        const Request& request = requests[i];
        if (request.n_response == 0) {
            throw InputError("request " + std::to_string(i) + ": has no response; leave it out");
        }
        if (request.continues && (i == 0 || requests[i - 1].session != request.session)) {
            throw InputError("request " + std::to_string(i) +
                             ": continues a session that is not the last request's; keep sessions together");
        }
        end += request.n_prompt + request.n_response;
    }
    if (end != n_tokens) {
        throw InputError("requests: they are of " + std::to_string(end) + " tokens, and there are " +
                         std::to_string(n_tokens) + "; give the tokens of all of them, and no others");
    }
}

// How many tokens of a chain, or of a tree's best path, are the ones that follow.
template <class D>
std::size_t accepted_of(const D& drafter, const DraftBuffer& draft, std::span<const Token> truth) {
    if constexpr (TreeDrafting<D>) {
        const std::span<const std::int32_t> parents = drafter.parents();
        LADDER_CHECK(parents.size() == static_cast<std::size_t>(draft.size()));
        std::size_t accepted = 0;
        std::int32_t node = -1;
        for (int i = 0; i < draft.size() && accepted < truth.size(); ++i) {  // children come after parents
            if (parents[static_cast<std::size_t>(i)] == node && draft[i] == truth[accepted]) {
                node = i;
                ++accepted;
            }
        }
        return accepted;
    } else {
        std::size_t accepted = 0;
        while (accepted < static_cast<std::size_t>(draft.size()) && accepted < truth.size() &&
               draft[static_cast<int>(accepted)] == truth[accepted]) {
            ++accepted;
        }
        return accepted;
    }
}

// Replays requests one by one; holds what goes on from one to the next.
template <Drafter D>
class RequestReplay {
public:
    RequestReplay(D& drafter, const RequestsOptions& options, const Clock& clock, RequestsResult& result)
        : drafter_(drafter), options_(options), clock_(clock), result_(result) {}

    // `goes_on_later`: the next request continues this one.
    void replay(const Request& request, std::span<const Token> tokens, bool goes_on_later) {
        const bool goes_on = request.continues;
        forget_before(request);
        std::size_t known = goes_on ? sequence_.size() : 0;
        if (!goes_on) {
            sequence_.clear();
        }
        const auto prompt = tokens.first(request.n_prompt);
        sequence_.insert(sequence_.end(), prompt.begin(), prompt.end());
        if (options_.history == History::none) {
            known = 0;
        }
        RequestFigures figures;
        figures.n_context = sequence_.size();
        figures.n_learned = sequence_.size() - known;
        figures.n_response = request.n_response - 1;
        learn(known);
        respond(tokens.subspan(request.n_prompt), figures);
        const Clock::Ticks start = clock_.now();
        end(goes_on_later);
        result_.commit.add(clock_.now() - start);
        result_.history_tokens += figures.n_learned + request.n_response;
        result_.requests.push_back(figures);
        session_ = request.session;
        begun_ = true;
    }

private:
    // Not timed: nobody waits for it.
    void forget_before(const Request& request) {
        const bool anew = options_.history == History::none ||
                          (options_.history == History::session && begun_ && request.session != session_);
        if (!anew) {
            return;
        }
        if constexpr (SessionDrafter<D>) {
            drafter_.start_over();
            result_.history_tokens = 0;
        } else if constexpr (Forgetful<D>) {
            drafter_.discard_context();
            drafter_.discard_dynamic();
            result_.history_tokens = 0;
        } else {
            throw InputError("history: this variant cannot forget; use history = \"all\"");
        }
    }

    void learn(std::size_t known) {
        const std::span<const Token> context(sequence_);
        const Clock::Ticks start = clock_.now();
        if constexpr (SessionDrafter<D>) {
            conversation_ += known == 0 ? 1 : 0;
            drafter_.begin(conversation_);
            drafter_.learn(context.subspan(known));
        } else if constexpr (Beginning<D>) {
            drafter_.begin(context, known);
        } else {
            for (std::size_t length = std::max<std::size_t>(known, 1); length < context.size(); ++length) {
                drafter_.update(context.first(length + 1));
            }
        }
        result_.learn.add(clock_.now() - start);
    }

    void draft(DraftBuffer& out) {
        if constexpr (SessionDrafter<D>) {
            drafter_.draft(options_.n_draft, out);
        } else {
            drafter_.draft(sequence_, options_.n_draft, out);
        }
    }

    // The last token of the sequence was just appended.
    void update() {
        if constexpr (SessionDrafter<D>) {
            drafter_.accept(sequence_.back());
        } else if (sequence_.size() > 1) {
            drafter_.update(sequence_);
        }
    }

    void end(bool goes_on_later) {
        if constexpr (!SessionDrafter<D>) {
            drafter_.end_chunk();
        } else if (!goes_on_later || options_.history == History::none) {
            drafter_.close(conversation_);
        }
    }

    void respond(std::span<const Token> response, RequestFigures& figures) {
        constexpr std::uint64_t calls_between_checks = 4096;
        sequence_.reserve(sequence_.size() +
                          response.size());  // the drafter's time is not to hold our copying
        std::size_t at = 0;
        const auto append = [&](std::size_t count) {
            const Clock::Ticks start = clock_.now();
            for (const std::size_t end = std::min(at + count, response.size()); at < end; ++at) {
                sequence_.push_back(response[at]);
                update();
            }
            result_.update.add(clock_.now() - start);
        };
        append(1);
        while (at < response.size()) {
            DraftBuffer draft = result_.log.next();
            const Clock::Ticks start = clock_.now();
            this->draft(draft);
            result_.draft.add(clock_.now() - start);
            result_.log.close(draft);
            const std::size_t accepted = accepted_of(drafter_, draft, response.subspan(at));
            append(accepted + 1);
            result_.accepted.push_back(static_cast<std::uint32_t>(accepted));
            ++figures.calls;
            figures.hit_calls += draft.size() == 0 ? 0 : 1;
            figures.n_drafted += static_cast<std::uint64_t>(draft.size());
            figures.n_accept += accepted;
            if (result_.log.calls() % calls_between_checks == 0) [[unlikely]] {
                options_.check_interrupt();
            }
        }
    }

    D& drafter_;
    const RequestsOptions& options_;
    const Clock& clock_;
    RequestsResult& result_;
    std::vector<Token> sequence_;  // of the session so far, where it goes on
    std::uint32_t session_ = 0;
    bool begun_ = false;
    std::uint64_t conversation_ = 0;  // counted: a text that begins anew is another one
};

// What a foreign drafter may get wrong, found after the replay.
inline void check_drafted(const DraftLog& log, const RequestsOptions& options) {
    log.for_each([&](std::span<const Token> draft) {
        for (const Token token : draft) {
            if (token < 0 || (options.vocab_size > 0 && token >= options.vocab_size)) {
                throw DrafterError("drafted token " + std::to_string(token) + ", which the vocabulary of " +
                                   std::to_string(options.vocab_size) + " does not have");
            }
        }
    });
}

// `tokens`: those of all requests, in their order. The drafter must be fresh but for its static cache.
template <Drafter D>
RequestsResult replay_requests(D& drafter, std::span<const Request> requests, std::span<const Token> tokens,
                               const RequestsOptions& options) {
    ReplayOptions bounds;
    bounds.n_draft = options.n_draft;
    check_replay_options(bounds);
    check_requests(requests, tokens.size());
    RequestsResult result;
    std::size_t max_calls = 0;
    for (const Request& request : requests) {
        max_calls += request.n_response - 1;
    }
    result.log = DraftLog(max_calls + 1, options.n_draft);
    result.requests.reserve(requests.size());
    result.accepted.reserve(max_calls);
    static const Clock clock;  // one a process: its calibration takes longer than a small replay
    RequestReplay<D> replay(drafter, options, clock, result);
    std::size_t begin = 0;
    for (std::size_t i = 0; i < requests.size(); ++i) {
        const Request& request = requests[i];
        options.check_interrupt();
        const std::size_t length = request.n_prompt + request.n_response;
        replay.replay(request, tokens.subspan(begin, length),
                      i + 1 < requests.size() && requests[i + 1].continues);
        begin += length;
    }
    result.memory_bytes = drafter.memory_bytes();
    result.clock_name = clock.name();
    result.clock_ns_per_reading = clock.ns_per_reading();
    result.ns_per_tick = clock.ns_per_tick();
    check_drafted(result.log, options);
    return result;
}

// One line a draft call: "request position: token token ...", position = index in the response.
inline std::string dump_text(const RequestsResult& result) {
    std::string text;
    std::size_t request = 0, call = 0, calls_before = 0, position = 1;
    result.log.for_each([&](std::span<const Token> draft) {
        while (call == calls_before + result.requests[request].calls) {
            calls_before = call;
            position = 1;
            ++request;
        }
        text += std::to_string(request) + ' ' + std::to_string(position) + ':';
        for (const Token token : draft) {
            text += ' ' + std::to_string(token);
        }
        text += '\n';
        position += result.accepted[call++] + std::size_t{1};
    });
    return text;
}

}  // namespace ladder
