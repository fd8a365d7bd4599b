// Drafts what is likely to be accepted: candidates with a calibrated probability, as long as their product is
// worth it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/check.hpp"
#include "base/types.hpp"
#include "beyond/calibrated/cost.hpp"
#include "beyond/calibrated/history/history.hpp"
#include "beyond/calibrated/history/scope.hpp"
#include "beyond/calibrated/prediction/calibration.hpp"
#include "beyond/calibrated/prediction/prediction.hpp"
#include "beyond/calibrated/state_file.hpp"
#include "drafting/drafter.hpp"

namespace ladder::calibrated {

struct Settings {
    std::int32_t tau = 50;  // thousandths: a draft ends where the chance that all of it is right falls below
    bool share = true;      // learn from the answers of all sessions
    std::uint32_t history_bound = 1U << 26;  // tokens of them held at most
    std::uint64_t vocabulary_size = 0;       // 0 if unknown; files of another one are refused
    std::uint32_t session_bound = 1U << 20;  // tokens of sessions' own contexts held at most, all together
};

// 16ths of a table's places that are taken before it grows. Own contexts are few and short-lived.
inline constexpr std::size_t own_load = 5;
inline constexpr std::size_t history_load = 10;

// One conversation: its own scope and where it stands in both.
struct Session {
    explicit Session(SessionId session, std::uint32_t bound) : id(session), own({bound, own_load, 2}) {}

    SessionId id;
    Scope own;
    SuffixWindow window;
    SuffixHashes here{};  // of the window
    Lead lead;
    std::array<MatchPointer, n_scopes> matches;
    std::uint64_t last_used = 0;

    template <class Archive>
    void archive(Archive& archive, const IndexedText& shared) {
        archive.value(id);
        own.archive(archive);
        archive.value(window);
        archive.value(lead);
        archive.value(matches);
        archive.value(last_used);
        if constexpr (Archive::loads) {
            archive.require(matches[0].is_sound(own.text) && matches[1].is_sound(shared),
                            "a match lies behind its text");
            archive.require(lead.is_sound(), "a context holds a token that is none");
            here = window.hashes();
        }
    }
};

class Engine {
public:
    explicit Engine(const Settings& settings = {})
        : settings_(settings), history_({0, history_load, 1}, settings.history_bound) {}

    // Goes on with `session`, or begins it. What a later accept() learns is its.
    void begin(SessionId session) {
        steps_ = next_ = 0;
        recording_ = false;
        std::unique_ptr<Session>& entry = sessions_[session];
        if (entry == nullptr) {
            entry = std::make_unique<Session>(session, settings_.session_bound);
        }
        now_ = entry.get();
        now_->last_used = ++begun_;
        close_oldest();
    }
    // The session's context is not needed any longer; what was learned of its answers stays.
    void close(SessionId session) {
        const auto entry = sessions_.find(session);
        if (entry == sessions_.end()) {
            return;
        }
        if (now_ == entry->second.get()) {
            now_ = nullptr;
            steps_ = next_ = 0;
        }
        sessions_.erase(entry);
    }
    // Nothing that only this session said will be drafted to others; forgetting() until that is done.
    void forget(SessionId session) {
        constexpr std::size_t at_once = 256;
        close(session);
        recording_ = false;
        history_.forget(session);
        history_.work(at_once);
    }
    [[nodiscard]] bool forgetting() const noexcept { return history_.forgetting(); }

    // A prompt: context to draft from, not an answer to learn from.
    void learn(std::span<const Token> tokens) {
        LADDER_CHECK(now_ != nullptr);
        for (const Token token : tokens) {
            const SuffixHashes before = now_->here;
            arrive(token);
            now_->own.count(before, now_->own.find(before), token);
            now_->matches[1].advance(text(1), token);
            append(token, false);
        }
        steps_ = next_ = 0;
        recording_ = false;
    }

    // Appends at most n_draft tokens to `out`.
    void draft(int n_draft, DraftBuffer& out) {
        LADDER_CHECK(now_ != nullptr);
        if (cost_.known() && accepted_ > 0) {
            cost_.passed(drafted_, accepted_);
        }
        accepted_ = 0;
        steps_ = next_ = 0;
        SuffixWindow window = now_->window;
        std::array<MatchPointer, n_scopes> matches = now_->matches;
        const std::int64_t least = cost_.known() ? 0 : std::int64_t{settings_.tau} * certain / 1000;
        const int end = longest(n_draft);
        std::int64_t product = certain;
        BestLength length;
        int drafted = 0;
        while (static_cast<int>(steps_) < end) {
            Prediction& step = steps_of_draft_[steps_++];
            predict_at(step, steps_ == 1 ? now_->here : window.hashes(), matches);
            product = step.token == null_token ? -1 : product * step.p >> probability_bits;
            if (product < least) {
                break;
            }
            drafted = static_cast<int>(steps_);
            if (cost_.known() && !length.add(product, cost_.price(drafted), end - drafted)) {
                break;
            }
            window.push(step.token);
            for (std::size_t scope = 0; scope < n_scopes; ++scope) {
                matches[scope].advance(text(scope), step.token);
            }
        }
        drafted_ = cost_.known() ? length.best() : drafted;
        for (int i = 0; i < drafted_; ++i) {
            out.push(steps_of_draft_[static_cast<std::size_t>(i)].token);
        }
    }
    // What passes over 1, 2, ... tokens cost: drafts are then as long as pays best, whatever tau. None: tau
    // again.
    void set_costs(std::span<const std::uint32_t> costs) { cost_.set(costs); }

    // One more token of the answer, drafted or not.
    void accept(Token token) {
        LADDER_CHECK(now_ != nullptr);
        if (next_ == steps_) {
            next_ = 0;
            steps_ = 1;
            predict_at(steps_of_draft_[0], now_->here, now_->matches);
        }
        ++accepted_;
        Prediction& step = steps_of_draft_[next_];
        arrive(token);
        learn_from(step, token, calibration_);
        now_->own.count(step.at, step.found[0], token);
        now_->matches[1].advance(text(1), token);
        if (settings_.share) {
            history_.work(4);
            if (!recording_) {
                history_.open(now_->id, now_->lead);
                recording_ = true;
            }
            history_.learn(step.at, step.found[1], token);
        }
        append(token, recording_);
        if (step.token == token) {
            ++next_;
        } else {
            steps_ = next_ = 0;
        }
    }

    [[nodiscard]] const Calibration& calibration() const noexcept { return calibration_; }
    [[nodiscard]] Calibration& calibration() noexcept { return calibration_; }
    [[nodiscard]] const History& history() const noexcept { return history_; }
    [[nodiscard]] std::size_t bytes() const noexcept {
        std::size_t bytes = sizeof *this + history_.bytes();
        for (const auto& [id, session] : sessions_) {
            bytes += sizeof *session + session->own.bytes();
        }
        return bytes;
    }

    // Everything: history, sessions, calibration. What the last draft computed is dropped, here as there.
    void save(Sink& sink) {
        Saver saver(sink, StateKind::everything, settings_.vocabulary_size);
        archive(saver);
        saver.finish();
    }
    void load(std::span<const std::byte> bytes, const std::string& name) {
        Engine loaded(settings_);
        Loader loader(bytes, name, StateKind::everything, settings_.vocabulary_size);
        loaded.archive(loader);
        loader.finish();
        loaded.cost_ = std::move(cost_);
        *this = std::move(loaded);
    }
    // The calibration alone.
    void save_calibration(Sink& sink) const {
        Saver saver(sink, StateKind::calibration, 0);
        saver.value(calibration_);
        saver.finish();
    }
    void load_calibration(std::span<const std::byte> bytes, const std::string& name) {
        Loader loader(bytes, name, StateKind::calibration, 0);
        Calibration loaded;
        loader.value(loaded);
        loader.require(loaded.is_sound(), "no training makes such a calibration");
        loader.finish();
        calibration_ = loaded;
    }

private:
    static constexpr int most_drafted = 64;

    template <class Archive>
    void archive(Archive& archive) {
        steps_ = next_ = 0;
        archive.value(calibration_);
        history_.archive(archive);
        archive.value(begun_);
        std::uint64_t n = sessions_.size();
        archive.value(n);
        if constexpr (Archive::loads) {
            archive.require(calibration_.is_sound(), "no training makes such a calibration");
            for (std::uint64_t i = 0; i < n; ++i) {
                auto session = std::make_unique<Session>(0, settings_.session_bound);
                session->archive(archive, history_.scope().text);
                const SessionId id = session->id;
                sessions_.insert_or_assign(id, std::move(session));
            }
            archive.require(sessions_.size() == n, "a session is there twice");
        } else {
            std::vector<SessionId> ids;
            for (const auto& entry : sessions_) {
                ids.push_back(entry.first);
            }
            std::sort(ids.begin(), ids.end());
            for (const SessionId id : ids) {
                sessions_.at(id)->archive(archive, history_.scope().text);
            }
        }
        recording_ = false;
        now_ = nullptr;
        accepted_ = 0;
    }

    [[nodiscard]] const IndexedText& text(std::size_t scope) const noexcept {
        return scope == 0 ? now_->own.text : history_.scope().text;
    }

    void predict_at(Prediction& step, const SuffixHashes& at,
                    const std::array<MatchPointer, n_scopes>& matches) {
        step.at = at;
        step.matches = matches;
        if (settings_.share) {
            history_.scope().prefetch(at);
        }
        step.found[0] = now_->own.find(at);
        step.found[1].size = 0;
        if (settings_.share) {
            step.found[1] = history_.scope().find(at);
        }
        predict(step, {&now_->own, settings_.share ? &history_.scope() : nullptr}, calibration_);
    }

    // The sessions begun longest ago, while all together hold too much.
    void close_oldest() {
        const auto held = [](const auto& entry) { return std::size_t{entry.second->own.text.head()} - 1; };
        std::size_t sum = 0;
        for (const auto& entry : sessions_) {
            sum += held(entry);
        }
        while (sum > settings_.session_bound && sessions_.size() > 1) {
            const auto oldest = std::min_element(
                sessions_.begin(), sessions_.end(),
                [](const auto& a, const auto& b) { return a.second->last_used < b.second->last_used; });
            sum -= held(*oldest);
            sessions_.erase(oldest);
        }
    }

    // The first thing to do with a token: what lies at its suffixes is asked for, and comes while it is
    // counted.
    void arrive(Token token) {
        Session& now = *now_;
        now.window.push(token);
        now.here = now.window.hashes();
        for (std::size_t i = 0; i < n_matches; ++i) {
            now.own.text.index(i).prefetch(now.here.matches[i]);
            history_.scope().text.index(i).prefetch(now.here.matches[i]);
        }
        history_.scope().prefetch(now.here);
    }

    // After `token` has been counted.
    void append(Token token, bool record) {
        Session& now = *now_;
        now.matches[0].advance(now.own.text, token);
        now.own.text.push(token);
        now.lead.push(token);
        for (std::size_t scope = 0; scope < (settings_.share ? n_scopes : 1); ++scope) {
            for (std::size_t i = n_matches; i-- > 0;) {
                if (now.window.length() >= match_lengths[i]) {
                    seek(now.matches[scope], text(scope), text(scope).index(i).find(now.here.matches[i]),
                         match_lengths[i], now.own.text);
                }
            }
        }
        now.own.text.mark(now.here.matches, now.window.length());
        if (record) {
            history_.mark(now.here.matches);
        }
    }

    [[nodiscard]] int longest(int n_draft) const noexcept {
        return std::min(n_draft, cost_.known() ? std::min(most_drafted, cost_.most_drafted()) : most_drafted);
    }

    Settings settings_;
    Cost cost_;
    int drafted_ = 0;            // by the last draft
    std::int64_t accepted_ = 0;  // tokens since
    Calibration calibration_;
    History history_;
    std::unordered_map<SessionId, std::unique_ptr<Session>> sessions_;
    std::uint64_t begun_ = 0;
    Session* now_ = nullptr;
    bool recording_ = false;  // whether the history's open stretch is this session's
    std::array<Prediction, most_drafted> steps_of_draft_;
    std::size_t steps_ = 0;  // that the last draft left
    std::size_t next_ = 0;   // of them, the one that the next token decides
};

}  // namespace ladder::calibrated
