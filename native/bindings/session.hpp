// A drafter as Python holds it: loaded, then replayed once or fed by hand.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <string>
#include <vector>

#include "base/tokens.hpp"
#include "bindings/python_errors.hpp"
#include "bindings/replay_report.hpp"
#include "bindings/requests_binding.hpp"
#include "drafting/drafter.hpp"
#include "drafting/replay.hpp"

namespace ladder {

namespace nb = nanobind;

inline std::vector<Token> tokens_from_bytes(const nb::bytes& bytes) {
    return tokens_from({static_cast<const std::byte*>(static_cast<const void*>(bytes.data())), bytes.size()},
                       "<tokens>");
}

inline Timing timing_from(const std::string& name) {
    if (name == "call") {
        return Timing::call;
    }
    if (name == "chunk") {
        return Timing::chunk;
    }
    if (name == "histogram") {
        return Timing::histogram;
    }
    throw InputError("timing: '" + name + "' is unknown; use call, chunk or histogram");
}

// Lets Ctrl-C through while the interpreter lock is released.
inline void raise_pending_signal() {
    const nb::gil_scoped_acquire lock;
    if (PyErr_CheckSignals() != 0) {
        throw nb::python_error();
    }
}

// What Python holds, whichever alternative of the variant it asked for.
class AnySession {
public:
    AnySession() = default;
    AnySession(const AnySession&) = delete;
    AnySession& operator=(const AnySession&) = delete;
    virtual ~AnySession() = default;
    virtual void load(const std::string& path) = 0;
    virtual void load_bytes(const nb::bytes& bytes) = 0;
    virtual nb::object verify_static() = 0;
    virtual void prefault_static() = 0;
    virtual nb::object static_figures() const = 0;
    virtual void append(Token token) = 0;
    virtual void extend(const nb::bytes& tokens) = 0;
    virtual std::vector<Token> draft(int n_draft) = 0;
    virtual void end_chunk() = 0;
    virtual void reset() = 0;
    virtual void forget() = 0;
    virtual nb::object token_limit() const = 0;
    virtual const std::vector<Token>& tokens() const = 0;
    virtual std::size_t static_bytes() const = 0;
    virtual std::size_t memory_bytes() const = 0;
    virtual nb::dict replay(const nb::bytes& tokens, int n_ctx, int n_draft, const std::string& timing) = 0;
    virtual nb::bytes replay_dump() const = 0;
    virtual nb::dict replay_requests(const nb::bytes& tokens, const RequestIndex& requests, int n_draft,
                                     const std::string& history, Token vocab_size) = 0;
    virtual nb::bytes requests_dump() const = 0;
    virtual nb::list draft_everywhere(const nb::bytes& tokens, int n_ctx, int n_draft) = 0;
};

// A drafter together with the sequence it is at, or with the last replay's drafts.
template <Drafter D>
class Session final : public AnySession {
public:
    void load(const std::string& path) override { load_source(StaticSource::file(path)); }
    void load_bytes(const nb::bytes& bytes) override {
        load_source(StaticSource::memory(
            {static_cast<const std::byte*>(static_cast<const void*>(bytes.data())), bytes.size()}));
    }

    void append(Token token) override {
        if (token < 0) {
            throw InputError("token " + std::to_string(token) +
                             ": is negative; give token ids of 0 and more");
        }
        sequence_.push_back(token);
        if (sequence_.size() > 1) {
            drafter_.update(sequence_);
        }
    }

    std::vector<Token> draft(int n_draft) override {
        ReplayOptions options;
        options.n_draft = n_draft;
        check_replay_options(options);
        std::vector<Token> memory(static_cast<std::size_t>(n_draft) + 1);
        DraftBuffer draft(memory.data());
        drafter_.draft(sequence_, n_draft, draft);
        memory.resize(static_cast<std::size_t>(draft.size()));
        return memory;
    }

    // Many tokens at once: a prompt, or a history that is read back.
    void extend(const nb::bytes& tokens) override {
        const std::vector<Token> more = tokens_from_bytes(tokens);
        const nb::gil_scoped_release unlocked;
        sequence_.reserve(sequence_.size() + more.size());
        for (const Token token : more) {
            append(token);
        }
    }

    void end_chunk() override {
        drafter_.end_chunk();
        sequence_.clear();
    }

    // Takes the sequence back as if it had never been: nothing of it reaches the dynamic cache.
    void reset() override {
        if constexpr (Forgetful<D>) {
            drafter_.discard_context();
            sequence_.clear();
        } else {
            throw InputError("reset: this variant cannot take text back; use another variant");
        }
    }

    // As new, but for the static cache.
    void forget() override {
        reset();
        if constexpr (Forgetful<D>) {
            drafter_.discard_dynamic();
        }
    }

    // One more than the largest token id of the static cache; null where its format does not say.
    nb::object token_limit() const override {
        if constexpr (requires(const D& drafter) { drafter.token_limit(); }) {
            return nb::cast(drafter_.token_limit());
        } else {
            return nb::none();
        }
    }

    D& drafter() { return drafter_; }

    // Checks the loaded static cache against its checksum; null where the format has none. Returns the time.
    nb::object verify_static() override {
        if constexpr (requires(D drafter) { drafter.verify_static(); }) {
            const auto start = std::chrono::steady_clock::now();
            {
                const nb::gil_scoped_release unlocked;
                drafter_.verify_static();
            }
            const std::chrono::duration<double, std::nano> elapsed = std::chrono::steady_clock::now() - start;
            return nb::cast(elapsed.count());
        } else {
            return nb::none();
        }
    }

    // Null where the format does not say.
    nb::object static_figures() const override {
        if constexpr (requires(const D drafter) { drafter.static_figures(); }) {
            const StaticFigures figures = drafter_.static_figures();
            nb::dict result;
            result["n_bigrams"] = figures.n_bigrams;
            result["n_pairs"] = figures.n_successors;
            return result;
        } else {
            return nb::none();
        }
    }

    // For a process that lives on: pages of a mapped file come in now. The others have read theirs.
    void prefault_static() override {
        if constexpr (requires(D drafter) { drafter.prefault_static(); }) {
            const nb::gil_scoped_release unlocked;
            drafter_.prefault_static();
        }
    }

    const std::vector<Token>& tokens() const override { return sequence_; }
    std::size_t static_bytes() const override { return drafter_.static_bytes(); }
    std::size_t memory_bytes() const override { return drafter_.memory_bytes(); }

    nb::dict replay(const nb::bytes& tokens, int n_ctx, int n_draft, const std::string& timing) override {
        if constexpr (TreeDrafting<D>) {
            throw InputError("replay: this variant drafts trees; replay requests with it");
        }
        begin_replay();
        ReplayOptions options{n_ctx, n_draft, timing_from(timing), raise_pending_signal};
        check_replay_options(options);
        tokens_ = tokens_from_bytes(tokens);
        n_ctx_ = static_cast<std::size_t>(n_ctx);
        {
            const nb::gil_scoped_release unlocked;
            result_ = ladder::replay(drafter_, tokens_, options);
        }
        return describe(result_);
    }

    nb::dict replay_requests(const nb::bytes& tokens, const RequestIndex& index, int n_draft,
                             const std::string& history, Token vocab_size) override {
        begin_replay();
        const RequestsOptions options{n_draft, history_from(history), vocab_size, raise_pending_signal};
        const std::vector<Request> requests = requests_from(index);
        tokens_ = tokens_from_bytes(tokens);
        {
            const nb::gil_scoped_release unlocked;
            requests_result_ = ladder::replay_requests(drafter_, std::span<const Request>(requests),
                                                       std::span<const Token>(tokens_), options);
        }
        return describe(requests_result_, n_draft);
    }

    nb::bytes requests_dump() const override {
        const std::string text = dump_text(requests_result_);
        return nb::bytes(text.data(), text.size());
    }

    nb::bytes replay_dump() const override {
        const std::string text = dump_text(result_.log, tokens_, n_ctx_);
        return nb::bytes(text.data(), text.size());
    }

    nb::list draft_everywhere(const nb::bytes& tokens, int n_ctx, int n_draft) override {
        begin_replay();
        const std::vector<Token> all = tokens_from_bytes(tokens);
        const ReplayOptions options{n_ctx, n_draft, Timing::call, raise_pending_signal};
        nb::list drafts;
        ladder::draft_everywhere(drafter_, std::span<const Token>(all), options,
                                 [&](std::size_t position, std::span<const Token> draft) {
                                     nb::list out;
                                     for (const Token token : draft) {
                                         out.append(token);
                                     }
                                     drafts.append(nb::make_tuple(position, out));
                                 });
        return drafts;
    }

private:
    void load_source(const StaticSource& source) {
        if (loaded_) {
            throw InputError("load: a static cache is loaded already; make a new Drafter for another one");
        }
        if (used_ || !sequence_.empty()) {
            throw InputError("load: the drafter has been used; load before anything else");
        }
        loaded_ = true;
        const nb::gil_scoped_release unlocked;
        drafter_.load(source);
    }

    // A replay starts from nothing but the static cache, or its figures and drafts would not be comparable.
    void begin_replay() {
        if (used_ || !sequence_.empty()) {
            throw InputError("replay: the drafter has been used; make a new Drafter for each replay");
        }
        used_ = true;
    }

    D drafter_;
    bool loaded_ = false;
    bool used_ = false;
    std::vector<Token> sequence_;
    std::vector<Token> tokens_;
    std::size_t n_ctx_ = 0;
    ReplayResult result_;
    RequestsResult requests_result_;
};

inline nb::class_<AnySession> define_session(nb::module_& module) {
    return nb::class_<AnySession>(module, "Drafter")
        .def("load", &AnySession::load, nb::arg("path"))
        .def("load_bytes", &AnySession::load_bytes, nb::arg("data"))
        .def("verify_static", &AnySession::verify_static)
        .def("prefault_static", &AnySession::prefault_static)
        .def("static_figures", &AnySession::static_figures)
        .def("append", &AnySession::append, nb::arg("token"))
        .def("extend", &AnySession::extend, nb::arg("tokens"))
        .def("draft", &AnySession::draft, nb::arg("n_draft"))
        .def("end_chunk", &AnySession::end_chunk)
        .def("reset", &AnySession::reset)
        .def("forget", &AnySession::forget)
        .def("token_limit", &AnySession::token_limit)
        .def("tokens", &AnySession::tokens)
        .def("static_bytes", &AnySession::static_bytes)
        .def("memory_bytes", &AnySession::memory_bytes)
        .def("replay", &AnySession::replay, nb::arg("tokens"), nb::arg("n_ctx"), nb::arg("n_draft"),
             nb::arg("timing") = "call")
        .def("replay_dump", &AnySession::replay_dump)
        .def("replay_requests", &AnySession::replay_requests, nb::arg("tokens"), nb::arg("requests"),
             nb::arg("n_draft"), nb::arg("history"), nb::arg("vocab_size") = 0)
        .def("requests_dump", &AnySession::requests_dump)
        .def("draft_everywhere", &AnySession::draft_everywhere, nb::arg("tokens"), nb::arg("n_ctx"),
             nb::arg("n_draft"));
}

}  // namespace ladder
