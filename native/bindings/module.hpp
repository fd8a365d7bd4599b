// The Python face of a variant: the same for all, so that nothing but the drafter differs.
#pragma once

#ifdef LADDER_REPLAY_PROGRAM  // the same folder as a plain program, without Python
#include "bindings/replay_program.hpp"
#else

#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/platform.hpp"
#include "base/tokens.hpp"
#include "containers/dense_segmented_map.hpp"
#include "drafting/drafter.hpp"
#include "drafting/memory_floor.hpp"
#include "drafting/replay.hpp"

namespace ladder {

namespace nb = nanobind;

inline std::vector<Token> tokens_from_bytes(const nb::bytes& bytes) {
    return tokens_from({static_cast<const std::byte*>(static_cast<const void*>(bytes.data())), bytes.size()},
                       "<tokens>");
}

inline Timing timing_from(const std::string& name) {
    if (name == "section") {
        return Timing::section;
    }
    if (name == "chunk") {
        return Timing::chunk;
    }
    if (name == "histogram") {
        return Timing::histogram;
    }
    throw InputError("timing: '" + name + "' is unknown; use section, chunk or histogram");
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

    nb::bytes replay_dump() const override {
        const std::string text = dump_text(result_.log, tokens_, n_ctx_);
        return nb::bytes(text.data(), text.size());
    }

    nb::list draft_everywhere(const nb::bytes& tokens, int n_ctx, int n_draft) override {
        begin_replay();
        const std::vector<Token> all = tokens_from_bytes(tokens);
        const ReplayOptions options{n_ctx, n_draft, Timing::section, raise_pending_signal};
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

    static nb::dict describe(const ReplayResult& result) {
        nb::dict out;
        out["n_tokens"] = result.n_tokens;
        out["n_chunks"] = result.n_chunks;
        out["n_drafted"] = result.n_drafted;
        out["n_accept"] = result.n_accept;
        out["draft_calls"] = result.log.calls();
        out["hit_calls"] = result.hit_calls;
        out["draft_steps"] = result.draft_steps;
        out["drafted_at"] = nb::cast(result.drafted_at);
        out["accepted_at"] = nb::cast(result.accepted_at);
        out["draft_ns_total"] = nb::cast(result.draft_ns_total);
        out["update_ns_total"] = nb::cast(result.update_ns_total);
        out["draft_update_ns_total"] = nb::cast(result.draft_update_ns_total);
        out["merge_ns_total"] = result.merge_ns_total;
        nb::dict clock;
        clock["name"] = result.clock_name;
        clock["ns_per_reading"] = result.clock_ns_per_reading;
        clock["readings"] = result.clock_readings;
        out["clock"] = clock;
        out["histogram"] = describe_histogram(result);
        return out;
    }

    static nb::object describe_histogram(const ReplayResult& result) {
        if (!result.histogram) {
            return nb::none();
        }
        nb::list buckets;
        result.histogram->for_each([&](double upper_ticks, std::uint64_t count) {
            buckets.append(nb::make_tuple(upper_ticks * result.ns_per_tick, count));
        });
        return buckets;
    }

    D drafter_;
    bool loaded_ = false;
    bool used_ = false;
    std::vector<Token> sequence_;
    std::vector<Token> tokens_;
    std::size_t n_ctx_ = 0;
    ReplayResult result_;
};

inline const char* compiler_name() {
#if defined(__clang__)
    return "clang " __clang_version__;
#else
    return "gcc " __VERSION__;
#endif
}

inline const char* standard_library_name() {
#if defined(_LIBCPP_VERSION)
    return "libc++";
#elif defined(__GLIBCXX__)
    return "libstdc++";
#else
    return "unknown";
#endif
}

using Options = std::map<std::string, std::string>;

// One way to build a variant: the values of its axes that choose it, and the drafter they choose.
struct Alternative {
    Options options;
    TieClass tie_class;
    StaticFormat static_format;
    std::unique_ptr<AnySession> (*make)();
    void (*convert)(const std::string& source,
                    const std::string& target);  // null: llama.cpp's format is its own
};

template <Drafter D>
Alternative alternative(Options options = {}) {
    Alternative made{std::move(options), D::tie_class, D::static_format,
                     [] { return std::unique_ptr<AnySession>(std::make_unique<Session<D>>()); }, nullptr};
    if constexpr (requires(const std::string& path) { D::convert(path, path); }) {
        made.convert = [](const std::string& source, const std::string& target) {
            D::convert(source, target);
        };
    }
    return made;
}

// The alternatives of one variant, the default one first.
class Alternatives {
public:
    explicit Alternatives(std::vector<Alternative> all) : all_(std::move(all)) {
        LADDER_CHECK(!all_.empty());
    }

    const Alternative& standard() const { return all_.front(); }

    // The one that has all the wanted values, the default's where nothing is said. InputError names the axis.
    const Alternative& choose(const Options& wanted) const {
        Options full = standard().options;
        for (const auto& [axis, value] : wanted) {
            if (!full.contains(axis)) {
                throw InputError("axis '" + axis + "': this variant has no such axis; use " + names(axes()));
            }
            full[axis] = value;
        }
        for (const Alternative& one : all_) {
            if (one.options == full) {
                return one;
            }
        }
        for (const auto& [axis, value] : wanted) {
            const auto values = axes().at(axis);
            if (std::find(values.begin(), values.end(), value) == values.end()) {
                throw InputError("axis '" + axis + "': has no value '" + value + "'; use one of its values");
            }
        }
        throw InputError("axes: these values cannot be combined; change one at a time");
    }

    // Axis -> its values, the default first.
    std::map<std::string, std::vector<std::string>> axes() const {
        std::map<std::string, std::vector<std::string>> found;
        for (const Alternative& one : all_) {
            for (const auto& [axis, value] : one.options) {
                std::vector<std::string>& values = found[axis];
                if (std::find(values.begin(), values.end(), value) == values.end()) {
                    values.push_back(value);
                }
            }
        }
        return found;
    }

private:
    static std::string names(const std::map<std::string, std::vector<std::string>>& axes) {
        std::string text;
        for (const auto& [axis, values] : axes) {
            text += (text.empty() ? "one of: " : ", ") + axis;
        }
        return text.empty() ? "none" : text;
    }

    std::vector<Alternative> all_;
};

inline nb::dict variant_info(const char* name, const Alternatives& alternatives) {
    const Alternative& standard = alternatives.standard();
    nb::dict info;
    info["name"] = name;
    info["tie_class"] = standard.tie_class == TieClass::iteration ? "iteration" : "token";
    info["static_format"] = format_name(standard.static_format);
    info["compiler"] = compiler_name();
    info["cxx_flags"] = LADDER_CXX_FLAGS;
    info["build_type"] = LADDER_BUILD_TYPE;
    info["standard_library"] = standard_library_name();
    info["unordered_dense"] = dense_map_source;
    info["axes"] = nb::cast(alternatives.axes());
    return info;
}

// Makes the variant's own static file from llama.cpp's; null where llama.cpp's is its own. Returns the time.
inline nb::object convert_static(const Alternative& variant, const std::string& source,
                                 const std::string& target) {
    if (variant.convert == nullptr) {
        return nb::none();
    }
    const auto start = std::chrono::steady_clock::now();
    {
        const nb::gil_scoped_release unlocked;
        variant.convert(source, target);
    }
    const std::chrono::duration<double, std::nano> elapsed = std::chrono::steady_clock::now() - start;
    nb::dict out;
    out["convert_ns"] = elapsed.count();
    return out;
}

inline void translate_input_errors() {
    nb::register_exception_translator([](const std::exception_ptr& error, void*) {
        try {
            std::rethrow_exception(error);
        } catch (const InputError& input) {
            PyErr_SetString(PyExc_ValueError, input.what());
        }
    });
}

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
             nb::arg("timing") = "section")
        .def("replay_dump", &AnySession::replay_dump)
        .def("draft_everywhere", &AnySession::draft_everywhere, nb::arg("tokens"), nb::arg("n_ctx"),
             nb::arg("n_draft"));
}

inline void define_variant(nb::module_& module, const char* name, std::vector<Alternative> all) {
    translate_input_errors();
    const auto alternatives = std::make_shared<const Alternatives>(std::move(all));
    module.def("info", [name, alternatives] { return variant_info(name, *alternatives); });
    module.def(
        "convert_static",
        [alternatives](const std::string& source, const std::string& target) {
            return convert_static(alternatives->standard(), source, target);
        },
        nb::arg("source"), nb::arg("target"));
    module.def("static_format_of",
               [](const std::string& path) { return format_name(detect_static_format(path)); });
    module.def("die_with_parent", die_with_parent);
    module.def(
        "memory_floor",
        [](std::size_t table_bytes, std::uint64_t reads) {
            const nb::gil_scoped_release unlocked;
            const MemoryFloor floor = measure_memory_floor(table_bytes, reads);
            return std::pair(floor.dependent_ns, floor.independent_ns);
        },
        nb::arg("table_bytes"), nb::arg("reads"));
    define_session(module).def(
        nb::new_([alternatives](const Options& options) { return alternatives->choose(options).make(); }),
        nb::arg("options") = Options{});
}

}  // namespace ladder

// The line that makes a folder a module: its name, then its alternatives, the default one first.
#define LADDER_VARIANT_MODULE(variant, ...)                        \
    NB_MODULE(variant, module) {                                   \
        ::ladder::define_variant(module, #variant, {__VA_ARGS__}); \
    }

#endif  // LADDER_REPLAY_PROGRAM
