// draft_ladder._synthetic: makes synthetic token streams and counts what `ladder corpus stats` prints. The
// GIL is released while it works.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "base/types.hpp"
#include "bindings/python_errors.hpp"
#include "bindings/python_values.hpp"
#include "counting/bigram_counts.hpp"
#include "textgen/synthetic.hpp"

namespace nb = nanobind;

namespace {

using namespace ladder;

// Token files are little-endian and these modules write memory as it is.
static_assert(std::endian::native == std::endian::little);

template <class Value>
Value item(const nb::dict& dict, const char* key) {
    if (!dict.contains(key)) {
        throw InputError(std::string("synthetic parameters: ") + key + ": is missing; give it");
    }
    return nb::cast<Value>(dict[key]);
}

synthetic::Branching branching_of(const nb::dict& dict) {
    return {.discount = item<double>(dict, "discount"),
            .scale_log2 = item<double>(dict, "scale_log2"),
            .head = item<double>(dict, "head"),
            .head_scale_log2 = item<double>(dict, "head_scale_log2"),
            .spread_log2 = item<double>(dict, "spread_log2"),
            .frequent_log2 = item<double>(dict, "frequent_log2")};
}

synthetic::Parameters parameters_of(const nb::dict& dict) {
    return {.vocabulary = item<std::uint32_t>(dict, "vocabulary"),
            .frequencies = item<synthetic::Knots>(dict, "frequencies"),
            .bigram = branching_of(item<nb::dict>(dict, "bigram")),
            .trigram = branching_of(item<nb::dict>(dict, "trigram")),
            .openness = item<double>(dict, "openness"),
            .copy = item<std::vector<double>>(dict, "copy"),
            .copy_spread_log2 = item<double>(dict, "copy_spread_log2"),
            .copy_pair_spread_log2 = item<double>(dict, "copy_pair_spread_log2"),
            .copy_frequent_log2 = item<double>(dict, "copy_frequent_log2"),
            .jump = item<double>(dict, "jump"),
            .document_tokens = item<synthetic::Knots>(dict, "document_tokens")};
}

// A language and one stream of its documents, read from the start.
class Generator {
public:
    Generator(const Figures& parameters, std::uint64_t language_seed, std::uint64_t stream_seed)
        : language_(parameters_of(parameters), language_seed), text_(language_, stream_seed) {}
    Generator(const Generator&) = delete;
    Generator& operator=(const Generator&) = delete;

    nb::bytes read(std::size_t n_tokens) {
        std::vector<Token> tokens(n_tokens);
        {
            const nb::gil_scoped_release release;
            text_.fill(tokens);
        }
        return nb::bytes(tokens.data(), tokens.size() * sizeof(Token));
    }

    [[nodiscard]] std::uint64_t documents() const { return text_.documents(); }
    [[nodiscard]] std::size_t memory_bytes() const { return language_.memory_bytes() + text_.memory_bytes(); }

private:
    synthetic::Language language_;
    synthetic::Text text_;
};

using TokenArray = nb::ndarray<const Token, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

std::vector<Figures> count_prefixes(const TokenArray& tokens, const std::vector<std::uint64_t>& lengths) {
    std::vector<Figures> result;
    for (const std::uint64_t length : lengths) {
        if (length > tokens.size()) {
            throw InputError("prefix of " + std::to_string(length) + " tokens: there are " +
                             std::to_string(tokens.size()) + "; ask for no more");
        }
        CountReport report;
        {
            const nb::gil_scoped_release release;
            AlignedBuffer prefix = AlignedBuffer::copy_of(std::as_bytes(std::span(tokens.data(), length)));
            report = count_bigrams(std::move(prefix), "<tokens>", {}, [](auto, auto) {});
        }
        if (PyErr_CheckSignals() != 0) {
            throw nb::python_error();
        }
        Figures counts;
        counts.add({{"n_tokens", length},
                    {"n_bigrams", report.n_bigrams},
                    {"n_pairs", report.n_pairs},
                    {"n_single", report.n_single},
                    {"n_at_most_100", report.n_at_most_100},
                    {"largest", report.largest}});
        result.push_back(counts);
    }
    return result;
}

}  // namespace

NB_MODULE(_synthetic, module) {
    using namespace nb::literals;
    translate_input_errors();
    module.doc() =
        "Synthetic token streams, and counts of token streams. Bad input is a ValueError of one line.";
    nb::class_<Generator>(module, "Generator", "The tokens of one stream of one language, from its start.")
        .def(nb::init<const Figures&, std::uint64_t, std::uint64_t>(), "parameters"_a, "language_seed"_a,
             "stream_seed"_a)
        .def("read", &Generator::read, "n_tokens"_a, "The next tokens as int32 little-endian bytes.")
        .def("documents", &Generator::documents, "Documents begun so far.")
        .def("memory_bytes", &Generator::memory_bytes, "Of the tables; the same however much is read.");
    module.def(
        "count_prefixes", &count_prefixes, "tokens"_a, "lengths"_a,
        "For each length: n_tokens, n_bigrams, n_pairs, n_single, n_at_most_100 and largest of the first "
        "tokens, counted as a static cache counts.");
}
