// draft_ladder._caches: external sort, merging and checking of static caches in bounded memory, and the
// nested-map counting to compare with. The GIL is released while it works; Ctrl-C ends it.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "base/clock.hpp"
#include "base/types.hpp"
#include "bindings/python_errors.hpp"
#include "bindings/python_progress.hpp"
#include "bindings/python_values.hpp"
#include "counting/bigram_counts.hpp"
#include "counting/cache_scan.hpp"
#include "counting/merge_counts.hpp"
#include "counting/nested_map_counts.hpp"
#include "counting/spill_counts.hpp"
#include "formats/file_io.hpp"

namespace nb = nanobind;

namespace {

using namespace ladder;

std::string hex(std::uint64_t value) {
    std::array<char, 17> text{};
    std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(value));
    return text.data();
}

Figures scan(const std::string& path, std::uint64_t vocab_size, const nb::object& progress) {
    CacheScan found;
    {
        const nb::gil_scoped_release release;
        found = scan_cache(path, vocab_size, python_progress(progress));
    }
    Figures result = python_counts(found.counts);
    result["content"] = hex(found.digest.high) + hex(found.digest.low);
    result["token_limit"] = found.token_limit;
    result["total_count"] = found.total_count;
    result["largest_count"] = found.largest_count;
    result["sorted"] = found.sorted;
    return result;
}

Figures count_tokens_part(const std::string& tokens, std::uint64_t first, std::uint64_t n,
                          const std::string& target, std::uint64_t vocab_size, unsigned jobs,
                          const nb::object& progress, std::uint64_t largest_count) {
    CountReport report;
    {
        const nb::gil_scoped_release release;
        CountOptions options;
        options.jobs = jobs;
        options.vocabulary_size = vocab_size;
        options.largest_count = largest_count;
        options.progress = python_progress(progress);
        report = count_part(tokens, first, n, target, options);
    }
    Figures result = python_counts(report);
    result.add({{"scan_ns", report.scan_ns},
                {"partition_ns", report.partition_ns},
                {"sort_write_ns", report.sort_write_ns}});
    return result;
}

std::vector<std::string> sort_file(const std::string& source, const std::string& prefix,
                                   std::size_t memory_bytes, const nb::object& progress) {
    const nb::gil_scoped_release release;
    return sort_cache(source, prefix, memory_bytes, python_progress(progress));
}

Figures merge(const std::vector<std::string>& sources, const std::string& target,
              const std::optional<std::string>& unique_in, const nb::object& progress,
              std::uint64_t largest_count) {
    CountReport report;
    LapTimer watch;
    std::uint64_t merge_ns = 0;
    {
        const nb::gil_scoped_release release;
        MergeOptions options{largest_count, unique_in.has_value(), target, python_progress(progress)};
        try {
            report = merge_sorted(sources, target, options);
        } catch (const RepeatedNgram& repeated) {
            spill::refuse_repeated(*unique_in, repeated.bigram());
        }
        merge_ns = watch.lap();
    }
    Figures result = python_counts(report);
    result["merge_ns"] = merge_ns;
    return result;
}

// Of tokens that were read elsewhere, as from an address Python knows: one part, cut into ranges of bigrams.
std::vector<nb::bytes> count_bytes(const nb::bytes& tokens, const std::vector<std::uint64_t>& bounds,
                                   std::uint64_t first_byte, const std::string& name,
                                   std::uint64_t vocab_size, unsigned jobs, std::uint64_t largest_count) {
    std::vector<std::vector<std::byte>> parts;
    {
        const std::span<const std::byte> given = bytes_of(tokens);
        const nb::gil_scoped_release release;
        AlignedBuffer buffer = AlignedBuffer::copy_of(given);
        CountOptions options;
        options.jobs = jobs;
        options.vocabulary_size = vocab_size;
        options.largest_count = largest_count;
        options.first_byte = first_byte;
        RangeSplitter splitter(bounds);
        count_bigrams(std::move(buffer), name, options,
                      [&](Bigram bigram, auto list) { splitter.add(bigram, list); });
        parts = splitter.take();
    }
    std::vector<nb::bytes> result;
    for (std::vector<std::byte>& part : parts) {
        result.push_back(to_python(part));
        part = {};
    }
    return result;
}

nb::bytes merge_bytes(const std::vector<nb::bytes>& caches, const std::string& name,
                      std::uint64_t largest_count) {
    std::vector<std::byte> merged;
    std::vector<Source> sources;
    for (const nb::bytes& cache : caches) {
        sources.push_back(Source::from_bytes(bytes_of(cache)));
    }
    {
        const nb::gil_scoped_release release;
        MergeOptions options;
        options.largest_count = largest_count;
        options.name = name;
        MemorySink sink;
        LlamaCacheWriter writer(sink);
        CacheMerger(std::move(sources), options).run([&](Bigram bigram, auto list) {
            writer.write(bigram, list);
        });
        merged = sink.take();
    }
    return to_python(merged);
}

Figures count_nested_maps(const std::string& tokens_path, const std::optional<std::string>& target,
                          std::uint64_t max_tokens) {
    std::uint64_t count_ns = 0;
    std::uint64_t n_tokens = 0;
    std::uint64_t n_bigrams = 0;
    {
        const nb::gil_scoped_release release;
        const AlignedBuffer bytes = read_whole_file(tokens_path);
        std::span<const Token> tokens(reinterpret_cast<const Token*>(bytes.data()),
                                      bytes.size() / sizeof(Token));
        tokens = tokens.first(static_cast<std::size_t>(std::min<std::uint64_t>(tokens.size(), max_tokens)));
        NestedMapCounts counts;
        LapTimer watch;
        counts.count(tokens);
        count_ns = watch.lap();
        n_tokens = tokens.size();
        n_bigrams = counts.n_bigrams();
        if (target) {
            AtomicFile file(*target);
            counts.write(file);
            file.commit();
        }
    }
    Figures result;
    result.add({{"n_tokens", n_tokens}, {"n_bigrams", n_bigrams}, {"count_ns", count_ns}});
    return result;
}

// The builder's counting alone, for the same comparison: nothing is written.
Figures count_sorted(const std::string& tokens_path, unsigned jobs, std::uint64_t max_tokens) {
    CountReport report;
    std::uint64_t count_ns = 0;
    std::uint64_t n_tokens = 0;
    {
        const nb::gil_scoped_release release;
        const AlignedBuffer bytes = read_whole_file(tokens_path);
        AlignedBuffer part = AlignedBuffer::copy_of(bytes.bytes().first(static_cast<std::size_t>(
            std::min<std::uint64_t>(bytes.size() / sizeof(Token), max_tokens) * sizeof(Token))));
        n_tokens = part.size() / sizeof(Token);
        CountOptions options;
        options.jobs = jobs;
        LapTimer watch;
        report =
            count_bigrams(std::move(part), tokens_path, options, [](Bigram, std::span<const Successor>) {});
        count_ns = watch.lap();
    }
    Figures result = python_counts(report);
    result.add({{"n_tokens", n_tokens}, {"count_ns", count_ns}});
    return result;
}

}  // namespace

NB_MODULE(_caches, module) {
    using namespace nb::literals;
    constexpr std::uint64_t largest_count = std::numeric_limits<std::int32_t>::max();
    constexpr std::uint64_t all = std::numeric_limits<std::uint64_t>::max();
    translate_input_errors();
    module.doc() = "Static caches in bounded memory. Bad input is a ValueError of one line.";
    module.def("scan", &scan, "path"_a, "vocab_size"_a = 0, "progress"_a.none() = nb::none(),
               "Reads and checks a cache in llama.cpp's format: counts, shares, token_limit, sorted, and a "
               "digest of its content that is the same in any order.");
    module.def("count_part", &count_tokens_part, "tokens_path"_a, "first"_a, "n"_a, "target"_a,
               "vocab_size"_a = 0, "jobs"_a = 1, "progress"_a.none() = nb::none(),
               "largest_count"_a = largest_count,
               "Counts tokens [first, first + n) of a token file into a sorted cache.");
    module.def("sort", &sort_file, "source"_a, "prefix"_a, "memory_bytes"_a, "progress"_a.none() = nb::none(),
               "Sorts a cache into files `<prefix><number>.bin` that together hold it; their paths.");
    module.def(
        "merge", &merge, "sources"_a, "target"_a, "unique_in"_a.none() = nb::none(),
        "progress"_a.none() = nb::none(), "largest_count"_a = largest_count,
        "Adds sorted caches. With unique_in they are parts of that file, which may hold no n-gram twice.");
    module.def(
        "count_bytes", &count_bytes, "tokens"_a, "bounds"_a, "first_byte"_a = 0, "name"_a = "<bytes>",
        "vocab_size"_a = 0, "jobs"_a = 1, "largest_count"_a = largest_count,
        "Counts int32 tokens given as bytes: a list of sorted caches, one for each range of bigrams that "
        "the ascending `bounds` (first << 32 | second) cut.");
    module.def("merge_bytes", &merge_bytes, "caches"_a, "name"_a = "merge", "largest_count"_a = largest_count,
               "Adds sorted caches given as bytes.");
    module.def("count_nested_maps", &count_nested_maps, "tokens_path"_a, "target"_a.none() = nb::none(),
               "max_tokens"_a = all,
               "Counts as llama.cpp's tools do; count_ns excludes reading and writing.");
    module.def("count_sorted", &count_sorted, "tokens_path"_a, "jobs"_a = 1, "max_tokens"_a = all,
               "Counts as the builder does, without writing; count_ns excludes reading.");
}
