// A variant as a plain program: the same line that makes a folder a module makes it `replay_<variant>` where
// LADDER_HOST names this file. For tools that must see one process without an interpreter (callgrind).
//   convert SOURCE TARGET                        llama.cpp's static file -> the variant's own
//   replay TOKENS STATIC|- N_CTX N_DRAFT [AXIS=VALUE ...]
// Answers one line of JSON; a bad input is one line on stderr and exit code 2.
#pragma once

#include <cstdio>
#include <cstring>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

#include "base/tokens.hpp"
#include "containers/dense_segmented_map.hpp"
#include "drafting/alternatives.hpp"
#include "drafting/replay.hpp"
#include "formats/file_io.hpp"

namespace ladder {

// Draft and update as functions that stay functions, so that a profiler can tell what belongs to which.
template <Drafter D>
class Counted {
public:
    static constexpr std::string_view rule = D::rule;
    static constexpr Ties ties = D::ties;
    static constexpr StaticFormat static_format = D::static_format;

    [[gnu::noinline]] void load(const StaticSource& source) { drafter_.load(source); }
    [[gnu::noinline]] void draft(std::span<const Token> sequence, int n_draft, DraftBuffer& out) {
        drafter_.draft(sequence, n_draft, out);
    }
    [[gnu::noinline]] void update(std::span<const Token> sequence) { drafter_.update(sequence); }
    [[gnu::noinline]] void end_chunk() { drafter_.end_chunk(); }
    std::size_t static_bytes() const { return drafter_.static_bytes(); }
    std::size_t memory_bytes() const { return drafter_.memory_bytes(); }

private:
    D drafter_;
};

struct ProgramRequest {
    std::string tokens;
    std::string static_file;  // empty: none
    ReplayOptions options;
};

using RunProgram = void (*)(const ProgramRequest& request);

// Processor time so far: unlike the clock on the wall it does not count what else the machine does.
inline double processor_ns() {
    return static_cast<double>(std::clock()) * (1e9 / CLOCKS_PER_SEC);
}

template <Drafter D>
void replay_and_print(const ProgramRequest& request) {
    const std::vector<Token> tokens = tokens_from(read_whole_file(request.tokens).bytes(), request.tokens);
    Counted<D> drafter;
    const double start_ns = processor_ns();
    if (!request.static_file.empty()) {
        drafter.load(StaticSource::file(request.static_file));
    }
    const double loaded_ns = processor_ns();
    const ReplayResult result = replay(drafter, std::span<const Token>(tokens), request.options);
    const double replayed_ns = processor_ns();
    std::printf(
        "{\"n_drafted\": %llu, \"n_accept\": %llu, \"draft_calls\": %llu, \"load_cpu_ns\": %.0f, "
        "\"replay_cpu_ns\": %.0f, \"draft_ns_total\": %.0f, \"update_ns_total\": %.0f, "
        "\"merge_ns_total\": %.0f, \"unordered_dense\": \"%s\"}\n",
        static_cast<unsigned long long>(result.n_drafted), static_cast<unsigned long long>(result.n_accept),
        static_cast<unsigned long long>(result.log.calls()), loaded_ns - start_ns, replayed_ns - loaded_ns,
        result.draft_ns_total.value_or(0), result.update_ns_total.value_or(0), result.merge_ns_total,
        dense_map_source);
}

template <Drafter D>
Alternative<RunProgram> alternative(Options options = {}) {
    return alternative_of<D, RunProgram>(std::move(options), replay_and_print<D>);
}

inline int number_from(const char* text, const char* name) {
    int number = 0;
    int used = 0;
    if (std::sscanf(text, "%d%n", &number, &used) != 1 || text[used] != '\0') {
        throw InputError(std::string(name) + ": '" + text + "' is not a number; give a whole number");
    }
    return number;
}

inline void run_program(const Alternatives<RunProgram>& all, int argc, char** argv) {
    const std::string_view verb = argc > 1 ? argv[1] : "";
    if (verb == "convert" && argc == 4) {
        if (all.standard().convert == nullptr) {
            throw InputError("convert: llama.cpp's format is the variant's own; use that file");
        }
        all.standard().convert(argv[2], argv[3]);
        return;
    }
    if (verb != "replay" || argc < 6) {
        throw InputError(
            "arguments: not understood; use convert SOURCE TARGET or replay TOKENS STATIC|- "
            "N_CTX N_DRAFT [AXIS=VALUE ...]");
    }
    Options wanted;
    for (int i = 6; i < argc; ++i) {
        const std::string text = argv[i];
        const std::size_t equals = text.find('=');
        if (equals == std::string::npos) {
            throw InputError("'" + text + "': is not AXIS=VALUE; write, for example, hash=xor");
        }
        wanted[text.substr(0, equals)] = text.substr(equals + 1);
    }
    ProgramRequest request{argv[2], std::strcmp(argv[3], "-") == 0 ? "" : argv[3], {}};
    request.options.n_ctx = number_from(argv[4], "N_CTX");
    request.options.n_draft = number_from(argv[5], "N_DRAFT");
    all.choose(wanted).use(request);
}

inline int program_main(std::vector<Alternative<RunProgram>> all, int argc, char** argv) {
    try {
        run_program(Alternatives<RunProgram>(std::move(all)), argc, argv);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 2;
    }
    return 0;
}

}  // namespace ladder

#define LADDER_VARIANT_MODULE(variant, ...)                     \
    int main(int argc, char** argv) {                           \
        return ladder::program_main({__VA_ARGS__}, argc, argv); \
    }
