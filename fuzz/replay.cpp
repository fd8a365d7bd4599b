// Replay on arbitrary tokens and an arbitrary sound cache: no variant reads outside, and all of one group
// draft, count and accept the same.
#include <algorithm>
#include <map>

#include "common.hpp"
#include "drafting/replay.hpp"
#include "formats/llama_cache_file.hpp"

namespace ladder::fuzz {

struct Case {
    int n_ctx;
    int n_draft;
    bool everywhere;
    std::vector<Token> tokens;
    std::vector<std::byte> cache;
};

// A byte picks one of a few tokens, so that n-grams repeat; a few values stand for far-away ids.
Token token_of(std::uint8_t byte, std::uint8_t vocabulary) {
    const int token = byte % (vocabulary % 32 + 2);
    return vocabulary >= 128 ? INT32_MAX - token * 13 : token * (vocabulary % 3 == 0 ? 13 : 1);
}

std::vector<std::byte> cache_from(Reader& reader, std::uint8_t vocabulary) {
    std::map<Bigram, std::vector<Successor>> cache;
    for (int n = reader.byte() % 32; n > 0 && !reader.empty(); --n) {
        const Bigram bigram{token_of(reader.byte(), vocabulary), token_of(reader.byte(), vocabulary)};
        std::vector<Successor>& list = cache[bigram];
        for (int k = reader.byte() % 24 + 1; k > 0; --k) {
            const Token token = token_of(reader.byte(), vocabulary);
            const std::uint8_t count = reader.byte();
            const bool known =
                std::any_of(list.begin(), list.end(), [&](auto s) { return s.token == token; });
            if (!known) {
                list.push_back({token, count >= 250 ? INT32_MAX - count : count % 16 + 1});
            }
        }
    }
    MemorySink sink;
    LlamaCacheWriter writer(sink);
    for (const auto& [bigram, list] : cache) {
        writer.write(bigram, list);
    }
    return sink.take();
}

Case case_from(Reader reader) {
    Case result;
    result.n_ctx = reader.byte() % 63 + 2;
    const std::uint8_t draft = reader.byte();
    result.n_draft = draft % 17;
    result.everywhere = draft >= 128;
    const std::uint8_t vocabulary = reader.byte();
    result.cache = cache_from(reader, vocabulary);
    while (!reader.empty() && result.tokens.size() < 256) {
        result.tokens.push_back(token_of(reader.byte(), vocabulary));
    }
    return result;
}

// Everything a variant decides, as numbers.
template <class D>
std::vector<std::int64_t> decide(const Case& given) {
    D drafter;
    drafter.load(StaticSource::memory(given.cache));
    ReplayOptions options;
    options.n_ctx = given.n_ctx;
    options.n_draft = given.n_draft;
    std::vector<std::int64_t> result;
    const auto note = [&](std::span<const Token> draft) {
        result.push_back(static_cast<std::int64_t>(draft.size()));
        for (const Token token : draft) {
            if (token < 0) {
                finding("a negative token was drafted");
            }
            result.push_back(token);
        }
    };
    if (given.everywhere) {
        draft_everywhere(drafter, std::span<const Token>(given.tokens), options,
                         [&](std::size_t, std::span<const Token> draft) { note(draft); });
        return result;
    }
    const ReplayResult replayed = replay(drafter, given.tokens, options);
    replayed.log.for_each(note);
    if (replayed.n_accept > replayed.n_drafted || replayed.hit_calls > replayed.log.calls()) {
        finding("more accepted than drafted");
    }
    result.push_back(static_cast<std::int64_t>(replayed.n_accept));
    return result;
}

using Use = std::vector<std::int64_t> (*)(const Case&);

}  // namespace ladder::fuzz

#define LADDER_HOST "fuzzed_variants.hpp"
#include "variants.inc"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace ladder;
    const fuzz::Case given = fuzz::case_from(fuzz::Reader(data, size));
    std::map<fuzz::Group, std::vector<std::int64_t>> first;
    for (const fuzz::Variant& variant : fuzz::variants()) {
        const auto got = variant.standard.use(given);
        if (first.try_emplace(fuzz::group_of(variant), got).first->second != got) {
            fuzz::finding(std::string(variant.name) + " drafts otherwise than its group");
        }
    }
    return 0;
}
