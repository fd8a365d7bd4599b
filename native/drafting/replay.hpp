// The only replay driver: it owns the loop, the acceptance count and the clock.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/check.hpp"
#include "base/clock.hpp"
#include "drafting/drafter.hpp"

namespace ladder {

enum class Timing : std::uint8_t {
    section,    // draft and update apart; consecutive phases share a reading
    chunk,      // one pair of readings around each chunk's drafts and updates
    histogram,  // as section, and every draft call's time goes into a histogram
};

struct ReplayOptions {
    int n_ctx = 4096;
    int n_draft = 3;
    Timing timing = Timing::section;
    std::function<void()> check_interrupt = [] {
    };  // throws to stop the replay; called outside the timed sections
};

// Every draft in calling order: its length, then its tokens. Memory is reserved and touched before the
// replay, and drafters write into it directly, so that recording a draft costs the timed loop one store.
class DraftLog {
public:
    DraftLog() = default;
    DraftLog(std::size_t max_calls, int n_draft)
        : words_(max_calls * (static_cast<std::size_t>(n_draft) + 1)) {}

    DraftBuffer next() { return DraftBuffer(words_.data() + used_ + 1); }
    void close(const DraftBuffer& draft) {
        words_[used_] = draft.size();
        used_ += static_cast<std::size_t>(draft.size()) + 1;
        ++calls_;
    }
    std::uint64_t calls() const { return calls_; }

    // Calls visit(span of drafted tokens) for each draft.
    template <class Visit>
    void for_each(Visit&& visit) const {
        for (std::size_t at = 0; at < used_;) {
            const auto length = static_cast<std::size_t>(words_[at]);
            visit(std::span<const Token>(words_.data() + at + 1, length));
            at += length + 1;
        }
    }

private:
    std::vector<Token> words_;
    std::size_t used_ = 0;
    std::uint64_t calls_ = 0;
};

// Times in buckets of eight to an octave: 9 % wide, whatever the magnitude.
class LatencyHistogram {
public:
    void add(Clock::Ticks ticks) { ++counts_[index_of(ticks)]; }

    // Calls visit(upper bound in ticks, count) for each bucket that is not empty, in rising order.
    template <class Visit>
    void for_each(Visit&& visit) const {
        for (std::size_t i = 0; i < counts_.size(); ++i) {
            if (counts_[i] != 0) {
                visit(upper_bound_of(i), counts_[i]);
            }
        }
    }

private:
    static constexpr std::size_t per_octave = 8;
    static constexpr int shift = 3;  // log2(per_octave)

    static std::size_t index_of(Clock::Ticks ticks) {
        if (ticks < per_octave) {
            return static_cast<std::size_t>(ticks);
        }
        const int octave = static_cast<int>(std::bit_width(ticks)) - 1 - shift;
        return static_cast<std::size_t>(octave) * per_octave + static_cast<std::size_t>(ticks >> octave);
    }
    static double upper_bound_of(std::size_t index) {
        if (index < 2 * per_octave) {
            return static_cast<double>(index + 1);
        }
        const std::size_t octave = index / per_octave - 1;
        return static_cast<double>(index - octave * per_octave + 1) *
               static_cast<double>(std::uint64_t{1} << octave);
    }

    std::array<std::uint64_t, 64 * per_octave> counts_{};
};

struct ReplayResult {
    std::uint64_t n_tokens = 0;
    std::uint64_t n_chunks = 0;
    std::uint64_t n_drafted = 0;
    std::uint64_t n_accept = 0;
    std::uint64_t draft_steps = 0;          // tokens drafted, and steps that drafted none
    std::uint64_t hit_calls = 0;            // draft calls that drafted something
    std::vector<std::uint64_t> drafted_at;  // by position in the draft
    std::vector<std::uint64_t> accepted_at;
    std::optional<double> draft_ns_total;  // absent with Timing::chunk
    std::optional<double> update_ns_total;
    std::optional<double> draft_update_ns_total;
    double merge_ns_total = 0;
    std::string clock_name;
    double clock_ns_per_reading = 0;
    std::uint64_t clock_readings = 0;  // readings charged to draft and update
    std::optional<LatencyHistogram> histogram;
    double ns_per_tick = 1;
    DraftLog log;
};

// Where the replay's time goes. `Sections` says whether draft and update are told apart.
template <Timing mode>
class Stopwatch {
public:
    explicit Stopwatch(const Clock& clock) : clock_(clock) {}

    void start() { last_ = read(); }
    void drafted() {
        if constexpr (mode != Timing::chunk) {
            const Clock::Ticks elapsed = lap();
            draft_ += elapsed;
            if constexpr (mode == Timing::histogram) {
                histogram_.add(elapsed);
            }
        }
    }
    void updated() {
        if constexpr (mode != Timing::chunk) {
            update_ += lap();
        }
    }
    // Ends the drafts and updates of a chunk, or a stretch of them; what follows is not theirs.
    void stop() {
        if constexpr (mode == Timing::chunk) {
            both_ += lap();
        }
    }
    // Merges have their own readings: they are reported apart.
    void start_merge() { merge_start_ = clock_.now(); }
    void merged() { merge_ += clock_.now() - merge_start_; }

    void report(ReplayResult& result) const {
        result.ns_per_tick = clock_.ns_per_tick();
        const auto ns = [&](Clock::Ticks ticks) { return static_cast<double>(ticks) * result.ns_per_tick; };
        if constexpr (mode == Timing::chunk) {
            result.draft_update_ns_total = ns(both_);
        } else {
            result.draft_ns_total = ns(draft_);
            result.update_ns_total = ns(update_);
            result.draft_update_ns_total = ns(draft_ + update_);
        }
        if constexpr (mode == Timing::histogram) {
            result.histogram = histogram_;
        }
        result.merge_ns_total = ns(merge_);
        result.clock_name = clock_.name();
        result.clock_ns_per_reading = clock_.ns_per_reading();
        result.clock_readings = readings_;
    }

private:
    Clock::Ticks read() {
        ++readings_;
        return clock_.now();
    }
    Clock::Ticks lap() {
        const Clock::Ticks previous = last_;
        last_ = read();
        return last_ - previous;
    }

    const Clock& clock_;
    Clock::Ticks last_ = 0;
    Clock::Ticks draft_ = 0, update_ = 0, both_ = 0, merge_ = 0, merge_start_ = 0;
    std::uint64_t readings_ = 0;
    LatencyHistogram histogram_;
};

inline void check_replay_options(const ReplayOptions& options) {
    constexpr int n_draft_limit = 1 << 16;
    if (options.n_ctx < 2) {
        throw InputError("n_ctx: " + std::to_string(options.n_ctx) + " is too small; use 2 or more");
    }
    if (options.n_draft < 0 || options.n_draft > n_draft_limit) {
        throw InputError("n_draft: " + std::to_string(options.n_draft) + " is out of range; use 0 to " +
                         std::to_string(n_draft_limit));
    }
}

// Number of whole chunks that are replayed; an exact last chunk is dropped, as upstream does.
inline std::size_t chunk_count(std::size_t n_tokens, std::size_t n_ctx) {
    return n_tokens == 0 ? 0 : (n_tokens - 1) / n_ctx;
}

// Drafts and updates through one chunk.
template <Drafter D, Timing mode>
void replay_chunk(D& drafter, std::span<const Token> chunk, const ReplayOptions& options, DraftLog& log,
                  Stopwatch<mode>& watch) {
    constexpr std::uint64_t calls_between_checks = 4096;
    std::size_t length = 1;  // the chunk's first token is there, uncounted
    const auto append = [&] {
        ++length;
        drafter.update(chunk.first(length));
    };
    watch.start();
    while (length < chunk.size()) {
        DraftBuffer draft = log.next();
        drafter.draft(chunk.first(length), options.n_draft, draft);
        watch.drafted();
        log.close(draft);
        for (int i = 0; i < draft.size() && length < chunk.size() && draft[i] == chunk[length]; ++i) {
            append();
        }
        if (length < chunk.size()) {
            append();
        }
        watch.updated();
        if (log.calls() % calls_between_checks == 0) [[unlikely]] {
            watch.stop();
            options.check_interrupt();
            watch.start();
        }
    }
    watch.stop();
}

// Walks the drafts again and calls visit(position of the next token, draft, number accepted).
template <class Visit>
void for_each_draft(const DraftLog& log, std::span<const Token> tokens, std::size_t n_ctx, Visit&& visit) {
    std::size_t position = 1;
    log.for_each([&](std::span<const Token> draft) {
        const std::size_t end = (position / n_ctx + 1) * n_ctx;
        std::size_t accepted = 0;
        while (accepted < draft.size() && position + accepted < end &&
               draft[accepted] == tokens[position + accepted]) {
            ++accepted;
        }
        visit(position, draft, accepted);
        position += accepted;
        if (position < end) {
            ++position;
        }
        if (position == end) {
            ++position;  // the next chunk's first token is given, not drafted
        }
    });
}

// Counted after the replay, from the log, so that no counter runs in the timed loop.
inline void count_acceptance(ReplayResult& result, std::span<const Token> tokens,
                             const ReplayOptions& options) {
    result.drafted_at.assign(static_cast<std::size_t>(options.n_draft), 0);
    result.accepted_at.assign(static_cast<std::size_t>(options.n_draft), 0);
    for_each_draft(result.log, tokens, static_cast<std::size_t>(options.n_ctx),
                   [&](std::size_t, std::span<const Token> draft, std::size_t accepted) {
                       result.n_drafted += draft.size();
                       result.n_accept += accepted;
                       result.hit_calls += draft.empty() ? 0 : 1;
                       const bool cut_short = draft.size() < static_cast<std::size_t>(options.n_draft);
                       result.draft_steps += draft.size() + (cut_short ? 1 : 0);
                       for (std::size_t i = 0; i < draft.size(); ++i) {
                           ++result.drafted_at[i];
                           result.accepted_at[i] += i < accepted ? 1 : 0;
                       }
                   });
}

template <Timing mode, Drafter D>
ReplayResult replay_timed(D& drafter, std::span<const Token> tokens, const ReplayOptions& options) {
    const auto n_ctx = static_cast<std::size_t>(options.n_ctx);
    ReplayResult result;
    result.n_tokens = tokens.size();
    result.n_chunks = chunk_count(tokens.size(), n_ctx);
    result.log = DraftLog(result.n_chunks * (n_ctx - 1), options.n_draft);
    static const Clock clock;  // one a process: its calibration takes longer than a small replay
    Stopwatch<mode> watch(clock);
    for (std::size_t k = 0; k < result.n_chunks; ++k) {
        options.check_interrupt();
        replay_chunk<D, mode>(drafter, tokens.subspan(k * n_ctx, n_ctx), options, result.log, watch);
        watch.start_merge();
        drafter.end_chunk();
        watch.merged();
    }
    watch.report(result);
    count_acceptance(result, tokens, options);
    return result;
}

// Replays `tokens` as drafting.md says. The drafter must be fresh but for its static cache.
template <Drafter D>
ReplayResult replay(D& drafter, std::span<const Token> tokens, const ReplayOptions& options) {
    check_replay_options(options);
    switch (options.timing) {
        case Timing::chunk:
            return replay_timed<Timing::chunk>(drafter, tokens, options);
        case Timing::histogram:
            return replay_timed<Timing::histogram>(drafter, tokens, options);
        case Timing::section:
            break;
    }
    return replay_timed<Timing::section>(drafter, tokens, options);
}

// Drafts at every position from the true history: what the auditor compares.
// Calls visit(position of the next token, draft).
template <Drafter D, class Visit>
void draft_everywhere(D& drafter, std::span<const Token> tokens, const ReplayOptions& options,
                      Visit&& visit) {
    check_replay_options(options);
    const auto n_ctx = static_cast<std::size_t>(options.n_ctx);
    std::vector<Token> memory(static_cast<std::size_t>(options.n_draft) + 1);
    for (std::size_t k = 0; k < chunk_count(tokens.size(), n_ctx); ++k) {
        options.check_interrupt();
        const auto chunk = tokens.subspan(k * n_ctx, n_ctx);
        for (std::size_t length = 1; length < n_ctx; ++length) {
            DraftBuffer draft(memory.data());
            drafter.draft(chunk.first(length), options.n_draft, draft);
            visit(k * n_ctx + length, std::span<const Token>(draft.begin(), draft.end()));
            drafter.update(chunk.first(length + 1));
        }
        drafter.end_chunk();
    }
}

// One line a draft call: "position: token token ...".
inline std::string dump_text(const DraftLog& log, std::span<const Token> tokens, std::size_t n_ctx) {
    std::string text;
    for_each_draft(log, tokens, n_ctx, [&](std::size_t position, std::span<const Token> draft, std::size_t) {
        text += std::to_string(position) + ':';
        for (const Token token : draft) {
            text += ' ' + std::to_string(token);
        }
        text += '\n';
    });
    return text;
}

}  // namespace ladder
