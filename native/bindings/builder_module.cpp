// draft_ladder._builder: builds, freezes and describes static caches. The GIL is released while it works;
// Ctrl-C ends it.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "base/clock.hpp"
#include "base/types.hpp"
#include "base/xxh64.hpp"
#include "bindings/python_errors.hpp"
#include "bindings/python_progress.hpp"
#include "bindings/python_values.hpp"
#include "containers/const_map_builder.hpp"
#include "counting/bigram_counts.hpp"
#include "formats/file_io.hpp"
#include "formats/freeze.hpp"
#include "formats/frozen_file.hpp"
#include "formats/llama_cache_file.hpp"

namespace nb = nanobind;

namespace {

using namespace ladder;

MapLayout layout_of(bool paired) {
    return paired ? MapLayout::paired : MapLayout::split;
}

void check_signals() {
    const nb::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) {
        throw nb::python_error();
    }
}

struct BuildTimes {
    std::uint64_t read_ns = 0;
    std::uint64_t map_ns = 0;   // const map of the frozen file
    std::uint64_t sync_ns = 0;  // fsync and rename
    std::uint64_t total_ns = 0;
};

// Both files from one pass over the counts; neither appears before both are whole.
CountReport build_files(const std::string& tokens_path, const std::string& llama_path,
                        const std::optional<std::string>& frozen_path, const CountOptions& options,
                        BuildTimes& times) {
    LapTimer total;
    LapTimer watch;
    AtomicFile llama_file(llama_path);
    LlamaCacheWriter llama_writer(llama_file);
    std::unique_ptr<AtomicFile> frozen_file;
    std::optional<FrozenWriter> frozen_writer;
    if (frozen_path) {
        frozen_file = std::make_unique<AtomicFile>(*frozen_path);
        frozen_writer.emplace(*frozen_file, MapLayout::split, options.vocabulary_size);
    }
    AlignedBuffer tokens = read_whole_file(tokens_path);
    times.read_ns = watch.lap();
    const CountReport report = count_bigrams(std::move(tokens), tokens_path, options,
                                             [&](Bigram bigram, std::span<const Successor> successors) {
                                                 llama_writer.write(bigram, successors);
                                                 if (frozen_writer) {
                                                     frozen_writer->add(bigram, successors);
                                                 }
                                             });
    watch.lap();
    if (frozen_writer) {
        options.progress("map", 0, 1);
        frozen_writer->finish();
        times.map_ns = watch.lap();
    }
    options.progress("sync", 0, 1);
    llama_file.commit();
    if (frozen_file) {
        frozen_file->commit();
    }
    options.progress("sync", 1, 1);
    times.sync_ns = watch.lap();
    times.total_ns = total.lap();
    return report;
}

Figures build_static(const std::string& tokens_path, const std::string& llama_out,
                     const std::optional<std::string>& frozen_out, std::uint64_t vocab_size, unsigned jobs,
                     const nb::object& progress, std::uint64_t largest_count) {
    const CountOptions options{jobs, vocab_size, largest_count, python_progress(progress)};
    BuildTimes times;
    CountReport report;
    {
        const nb::gil_scoped_release release;
        report = build_files(tokens_path, llama_out, frozen_out, options, times);
    }
    Figures result = python_counts(report);
    result.add({{"n_tokens", report.n_tokens},
                {"read_ns", times.read_ns},
                {"scan_ns", report.scan_ns},
                {"partition_ns", report.partition_ns},
                {"sort_write_ns", report.sort_write_ns},
                {"map_ns", times.map_ns},
                {"sync_ns", times.sync_ns},
                {"total_ns", times.total_ns}});
    return result;
}

using Counts = std::vector<std::pair<std::pair<Token, Token>, std::vector<std::pair<Token, std::int32_t>>>>;

void append_counts(Counts& counts, Bigram bigram, std::span<const Successor> successors) {
    auto& list = counts.emplace_back(std::pair(bigram.first, bigram.second), 0).second;
    for (const Successor& successor : successors) {
        list.emplace_back(successor.token, successor.count);
    }
}

Counts count_tokens(const nb::bytes& tokens, std::uint64_t vocab_size, unsigned jobs,
                    std::uint64_t largest_count) {
    AlignedBuffer buffer = AlignedBuffer::copy_of(bytes_of(tokens));
    const nb::gil_scoped_release release;
    Counts counts;
    const CountOptions options{jobs, vocab_size, largest_count, {}};
    count_bigrams(std::move(buffer), "<bytes>", options,
                  [&](Bigram bigram, auto list) { append_counts(counts, bigram, list); });
    return counts;
}

Counts read_llama(const std::string& path) {
    const nb::gil_scoped_release release;
    Source source = Source::from_file(path);
    const SortedCache cache(source, 0, check_signals);
    Counts counts;
    cache.for_each([&](Bigram bigram, auto list) { append_counts(counts, bigram, list); });
    return counts;
}

Figures freeze_file(const std::string& source, const std::string& target, bool paired,
                    std::uint64_t vocab_size) {
    FreezeReport report;
    {
        const nb::gil_scoped_release release;
        report = freeze(source, target, layout_of(paired), vocab_size, check_signals);
    }
    Figures result;
    result.add({{"n_bigrams", report.n_bigrams},
                {"n_pairs", report.n_successors},
                {"bytes", report.file_bytes},
                {"read_ns", report.read_ns},
                {"write_ns", report.write_ns}});
    return result;
}

// Loads (without verifying), then verifies, and says how long each took.
template <MapLayout layout>
Figures check_frozen_in(const std::string& path) {
    LapTimer watch;
    std::uint64_t load_ns = 0;
    std::uint64_t verify_ns = 0;
    BasicFrozenFile<layout> file;
    {
        const nb::gil_scoped_release release;
        file = BasicFrozenFile<layout>::load(path);
        load_ns = watch.lap();
        file.verify();
        verify_ns = watch.lap();
    }
    Figures result;
    result["layout"] = layout == MapLayout::split ? "split" : "paired";
    result.add({{"n_bigrams", file.n_bigrams()},
                {"n_pairs", file.n_successors()},
                {"vocabulary_size", file.vocabulary_size()},
                {"token_limit", file.token_limit()},
                {"bytes", file.static_bytes()},
                {"map_offset", file.static_bytes() - file.map().bytes().size()},
                {"load_ns", load_ns},
                {"verify_ns", verify_ns}});
    return result;
}

Figures check_frozen(const std::string& path) {
    return frozen_layout(path) == MapLayout::paired ? check_frozen_in<MapLayout::paired>(path)
                                                    : check_frozen_in<MapLayout::split>(path);
}

std::vector<std::vector<std::pair<Token, std::int32_t>>> frozen_find(
    const std::string& path, const std::vector<std::pair<Token, Token>>& bigrams) {
    const auto look_up = [&](const auto& file) {
        std::vector<std::vector<std::pair<Token, std::int32_t>>> found;
        for (const auto& [first, second] : bigrams) {
            auto& list = found.emplace_back();
            for (const Successor& successor : file.find({first, second})) {
                list.emplace_back(successor.token, successor.count);
            }
        }
        return found;
    };
    const nb::gil_scoped_release release;
    return frozen_layout(path) == MapLayout::paired ? look_up(PairedFrozenFile::load(path))
                                                    : look_up(FrozenFile::load(path));
}

// Of a llama.cpp file every figure; a frozen file keeps no list of its bigrams, so its shares are unknown.
Figures statistics(const std::string& path) {
    const StaticFormat format = detect_static_format(path);
    Figures result;
    if (format == StaticFormat::frozen || format == StaticFormat::paired) {
        const Figures header = check_frozen(path);
        for (const char* known : {"n_bigrams", "n_pairs", "token_limit"}) {
            result[known] = header[known];
        }
        for (const char* unknown : {"single_share", "at_most_100_share", "largest"}) {
            result[unknown] = nb::none();
        }
    } else {
        CountReport report;
        std::uint64_t token_limit = 0;
        {
            const nb::gil_scoped_release release;
            Source source = Source::from_file(path);
            const SortedCache cache(source, 0, check_signals);
            cache.for_each([&](Bigram, std::span<const Successor> list) { report.add(list.size()); });
            token_limit = cache.token_limit();
        }
        result = python_counts(report);
        result["token_limit"] = token_limit;
    }
    result["format"] = format_name(format);
    return result;
}

nb::bytes vmap_from_pairs(const std::vector<std::tuple<Token, Token, std::uint64_t>>& pairs, bool paired) {
    AlignedBuffer map;
    {
        const nb::gil_scoped_release release;
        std::vector<Bigram> keys;
        std::vector<std::uint64_t> values;
        for (const auto& [first, second, value] : pairs) {
            keys.push_back({first, second});
            values.push_back(value);
        }
        map = build_const_map(layout_of(paired), keys, values);
    }
    return to_python(map.bytes());
}

template <MapLayout layout>
std::vector<std::optional<std::uint64_t>> look_up_in(std::span<const std::byte> bytes,
                                                     const std::vector<std::pair<Token, Token>>& keys) {
    const BasicConstMapView<layout> view(bytes);
    if (!view.verify_checksum()) {
        throw InputError("<bytes>", bytes.size() - const_map::checksum_bytes,
                         "the const map's checksum does not match", "the file is damaged; build it again");
    }
    std::vector<std::optional<std::uint64_t>> values;
    for (const auto& [first, second] : keys) {
        const std::uint64_t value = view.lookup({first, second});
        values.push_back(value == map_absent ? std::nullopt : std::optional(value));
    }
    return values;
}

std::vector<std::optional<std::uint64_t>> vmap_lookup_many(const nb::bytes& map,
                                                           const std::vector<std::pair<Token, Token>>& keys) {
    const AlignedBuffer buffer = AlignedBuffer::copy_of(bytes_of(map));
    const nb::gil_scoped_release release;
    return starts_with_magic(buffer.bytes(), const_map::paired_magic)
               ? look_up_in<MapLayout::paired>(buffer.bytes(), keys)
               : look_up_in<MapLayout::split>(buffer.bytes(), keys);
}

}  // namespace

NB_MODULE(_builder, module) {
    using namespace nb::literals;
    constexpr std::uint64_t largest_count = std::numeric_limits<std::int32_t>::max();
    translate_input_errors();
    module.doc() = "Builds, freezes and describes static caches. Bad input is a ValueError of one line.";

    module.def("build_static", &build_static, "tokens_path"_a, "llama_out"_a,
               "frozen_out"_a.none() = nb::none(), "vocab_size"_a = 0, "jobs"_a = 1,
               "progress"_a.none() = nb::none(), "largest_count"_a = largest_count,
               "Counts a token file and writes llama.cpp's format and, if asked for, the frozen one. "
               "progress(phase, "
               "done, total) may raise to cancel. Returns counts, shares and nanoseconds per phase.");
    module.def(
        "count_tokens", &count_tokens, "tokens"_a, "vocab_size"_a = 0, "jobs"_a = 1,
        "largest_count"_a = largest_count,
        "Counts int32 tokens given as bytes: a list of ((a, b), [(successor, count), ...]), all ascending.");
    module.def("read_llama", &read_llama, "path"_a,
               "All n-grams of a llama.cpp static cache, as count_tokens gives them.");
    module.def("freeze", &freeze_file, "source"_a, "target"_a, "paired"_a = false, "vocab_size"_a = 0,
               "Freezes a llama.cpp static cache. Returns counts, bytes and nanoseconds.");
    module.def("check_frozen", &check_frozen, "path"_a,
               "Loads and verifies a frozen file; its figures, load_ns (without verifying) and verify_ns.");
    module.def(
        "frozen_find", &frozen_find, "path"_a, "bigrams"_a,
        "For every bigram its [(successor, count), ...] in a frozen file, not verified; empty if absent.");
    module.def(
        "format_of", [](const std::string& path) { return format_name(detect_static_format(path)); },
        "path"_a, "'empty', 'llama' or 'frozen', by content.");
    module.def(
        "statistics", &statistics, "path"_a,
        "n_bigrams, n_pairs, single_share, at_most_100_share, largest and format of a checked static file.");
    module.def("vmap_from_pairs", &vmap_from_pairs, "pairs"_a, "paired"_a = false,
               "Bytes of a VMAP0001 (or PMAP0001) map from (first, second, value) triples.");
    module.def("vmap_lookup_many", &vmap_lookup_many, "map"_a, "keys"_a,
               "For every (first, second) its value in a VMAP0001 or PMAP0001 map, or None.");
    module.def(
        "xxh64", [](const nb::bytes& bytes, std::uint64_t seed) { return xxh64(bytes_of(bytes), seed); },
        "bytes"_a, "seed"_a = 0, "XXH64 of bytes.");
    module.def(
        "xxh64_word", [](std::uint64_t word) { return xxh64_word(word); }, "word"_a,
        "XXH64 of eight little-endian bytes, as the const map hashes its keys.");
}
