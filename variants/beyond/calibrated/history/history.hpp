// What all sessions have answered: one scope, and a log that says whose each token is, so that it can be
// unlearned.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>

#include "base/check.hpp"
#include "base/types.hpp"
#include "beyond/calibrated/history/scope.hpp"

namespace ladder::calibrated {

using SessionId = std::uint64_t;

// A stretch of one session's tokens in the ring. The last tokens of its context lie before it, so that all
// its contexts can be found again from the ring alone.
struct Stretch {
    SessionId session;
    std::uint32_t place;      // of its first token, context included
    std::uint32_t lead;       // tokens of context
    std::uint32_t length;     // tokens learned
    std::uint32_t unlearned;  // of those, from the front
};

// The last tokens of a text: what a stretch begins with.
class Lead {
public:
    static constexpr std::size_t most = 6;  // the longest order
    void push(Token token) noexcept { tokens_[n_++ % most] = token; }
    [[nodiscard]] std::size_t size() const noexcept { return std::min(n_, most); }
    [[nodiscard]] bool is_sound() const noexcept {
        return std::all_of(tokens_.begin(), tokens_.end(), [](Token token) { return token >= 0; });
    }
    [[nodiscard]] Token operator[](std::size_t i) const noexcept { return tokens_[(n_ - size() + i) % most]; }

private:
    std::array<Token, most> tokens_{};
    std::size_t n_ = 0;
};

class History {
public:
    // `bound`: tokens held at most, the oldest going first.
    History(const ScopeShape& shape, std::uint32_t bound)
        : scope_({bound + margin, shape.load_16ths, shape.new_contexts}), bound_(bound) {
        LADDER_CHECK(bound >= least_bound);
    }
    static constexpr std::uint32_t least_bound = 64;

    [[nodiscard]] Scope& scope() noexcept { return scope_; }
    [[nodiscard]] const Scope& scope() const noexcept { return scope_; }
    [[nodiscard]] std::uint32_t held() const noexcept { return held_; }

    // Opens a stretch of `session` after this context.
    void open(SessionId session, const Lead& lead) {
        stretches_.push_back({session, scope_.text.head(), static_cast<std::uint32_t>(lead.size()), 0, 0});
        for (std::size_t i = 0; i < lead.size(); ++i) {
            push(lead[i]);
        }
    }
    // Learns one more token of the open stretch.
    void learn(const SuffixHashes& at, const FoundNodes& found, Token token) {
        scope_.count(at, found, token);
        push(token);
        ++stretches_.back().length;
    }
    // The hashes of the n-grams that end with the open stretch.
    void mark(const std::array<std::uint64_t, n_matches>& hashes) noexcept {
        scope_.text.mark(hashes, stretches_.back().lead + stretches_.back().length);
    }

    // From now on nothing that only `session` said is learned from; work() does it, step by step.
    void forget(SessionId session) {
        if (!stretches_.empty()) {
            pending_.push_back({session, first_number_, first_number_ + stretches_.size()});
        }
    }
    // Steps that forgetting may take now: a token unlearned or a stretch looked at.
    void work(std::size_t steps) {
        while (!pending_.empty() && steps-- > 0) {
            Pending& now = pending_.front();
            now.next = std::max(now.next, first_number_);
            if (now.next >= now.end) {
                pending_.pop_front();
                continue;
            }
            Stretch& stretch = stretches_[now.next - first_number_];
            if (stretch.session != now.session || !unlearn_next(stretch)) {
                ++now.next;
            }
        }
    }
    [[nodiscard]] bool forgetting() const noexcept { return !pending_.empty(); }
    [[nodiscard]] std::size_t bytes() const noexcept {
        return scope_.bytes() + stretches_.size() * sizeof(Stretch);
    }

    template <class Archive>
    void archive(Archive& archive) {
        archive.value(bound_);
        archive.value(held_);
        archive.value(gone_);
        archive.value(first_number_);
        scope_.archive(archive);
        archive_all(archive, stretches_);
        archive_all(archive, pending_);
        if constexpr (Archive::loads) {
            archive.require(is_sound(), "the log does not fit the text");
        }
    }

private:
    template <class Archive, class T>
    static void archive_all(Archive& archive, std::deque<T>& values) {
        GrowingArray<T> flat;
        for (const T& value : values) {
            flat.push_back(value);
        }
        archive.array(flat);
        values.assign(flat.data(), flat.data() + flat.size());
    }
    // Stretches lie one after another up to the text's end, and all that is held is in them.
    [[nodiscard]] bool is_sound() const noexcept {
        const IndexedText& text = scope_.text;
        std::uint64_t sum = 0;
        std::uint32_t place = stretches_.empty() ? text.head() : stretches_.front().place;
        for (const Stretch& stretch : stretches_) {
            const std::uint64_t length = std::uint64_t{stretch.lead} + stretch.length;
            if (stretch.place != place || place == 0 || place > text.capacity() ||
                stretch.lead > Lead::most || stretch.unlearned > stretch.length || length > text.capacity()) {
                return false;
            }
            sum += length;
            place = text.ahead(place, static_cast<std::uint32_t>(length));
        }
        const bool pending = std::all_of(pending_.begin(), pending_.end(), [&](const Pending& p) {
            return p.next <= p.end && p.end <= first_number_ + stretches_.size();
        });
        // Before the ring is full its text is one piece.
        const bool full = text.size() == std::size_t{text.capacity()} + 1;
        if (!full && !stretches_.empty() && stretches_.front().place + sum != text.head()) {
            return false;
        }
        return pending && place == text.head() && bound_ >= least_bound &&
               bound_ + margin == text.capacity() && held_ <= bound_ && sum == std::uint64_t{held_} + gone_ &&
               held_ < text.size() &&
               (stretches_.empty() ? gone_ == 0
                                   : gone_ <= stretches_.front().lead + stretches_.front().length);
    }

    static constexpr std::uint32_t margin = 16;  // places behind the oldest token that still hold its context

    struct Pending {
        SessionId session;
        std::uint64_t next, end;  // numbers of stretches
    };

    void push(Token token) {
        while (held_ >= bound_) {
            evict();
        }
        scope_.text.push(token);
        ++held_;
    }

    // Gives up the oldest token.
    void evict() {
        Stretch& oldest = stretches_.front();
        if (gone_ >= oldest.lead + oldest.unlearned) {
            unlearn_next(oldest);
        }
        ++gone_;
        --held_;
        if (gone_ == oldest.lead + oldest.length && stretches_.size() > 1) {
            stretches_.pop_front();
            ++first_number_;
            gone_ = 0;
        }
    }

    // Takes back the stretch's next token. False if none was left; then its text is blank, too.
    bool unlearn_next(Stretch& stretch) {
        if (stretch.unlearned == stretch.length) {
            blank(stretch);
            return false;
        }
        const std::uint32_t at = stretch.lead + stretch.unlearned++;
        const std::uint32_t context = std::min<std::uint32_t>(at, Lead::most);
        std::uint32_t place = scope_.text.ahead(stretch.place, at - context);
        SuffixWindow window;
        for (std::uint32_t i = 0; i < context; ++i, place = scope_.text.after(place)) {
            window.push(scope_.text.at(place));
        }
        const SuffixHashes hashes = window.hashes();
        for (std::size_t i = 0; i < hashes.known; ++i) {
            scope_.nodes.uncount(hashes.keys[i], scope_.text.at(place));
        }
        return true;
    }
    // What has been given up may have been overwritten, but for the margin.
    void blank(const Stretch& stretch) {
        const bool oldest = &stretch == &stretches_.front();
        std::uint32_t i = oldest && gone_ > margin ? gone_ - margin : 0;
        for (; i < stretch.lead + stretch.length; ++i) {
            scope_.text.blank(scope_.text.ahead(stretch.place, i));
        }
    }

    Scope scope_;
    std::uint32_t bound_;
    std::uint32_t held_ = 0;
    std::uint32_t gone_ = 0;          // tokens of the oldest stretch that are given up, context included
    std::uint64_t first_number_ = 0;  // of the oldest stretch, counted from the first ever
    std::deque<Stretch> stretches_;
    std::deque<Pending> pending_;
};

}  // namespace ladder::calibrated
