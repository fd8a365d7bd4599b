// Arbitrary bytes as llama.cpp's static file: every variant takes or refuses them alike, and drafts alike
// from what it took.
#include <map>
#include <optional>

#include "common.hpp"
#include "drafting/drafter.hpp"

namespace ladder::fuzz {

using Drafts = std::vector<std::vector<Token>>;

std::vector<Token> draft_after(auto& drafter, Bigram bigram) {
    const std::vector<Token> sequence{bigram.first, bigram.second};
    std::vector<Token> memory(9);
    DraftBuffer draft(memory.data());
    drafter.draft(sequence, 8, draft);
    return {draft.begin(), draft.end()};
}

// Every draft of one variant; nothing if it refused the file.
template <class D>
std::optional<Drafts> decide(std::span<const std::byte> bytes) {
    D drafter;
    try {
        drafter.load(StaticSource::memory(bytes));
    } catch (const InputError&) {
        return std::nullopt;
    }
    Drafts result;
    for (std::size_t at = 0; at + 8 <= bytes.size() && at < 256; at += 4) {
        Bigram bigram{};
        std::memcpy(&bigram, bytes.data() + at, sizeof bigram);
        if (bigram.first >= 0 && bigram.second >= 0) {
            result.push_back(draft_after(drafter, bigram));
        }
    }
    return result;
}

using Use = std::optional<Drafts> (*)(std::span<const std::byte>);

}  // namespace ladder::fuzz

#define LADDER_HOST "fuzzed_variants.hpp"
#include "variants.inc"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace ladder;
    const std::vector<std::byte> bytes = fuzz::as_bytes({data, size});
    if (detect_static_format(bytes) == StaticFormat::frozen) {
        return 0;  // another target's matter
    }
    std::map<fuzz::Group, fuzz::Drafts> first;
    std::optional<bool> accepted;
    for (const fuzz::Variant& variant : fuzz::variants()) {
        if (variant.standard.rule != "llama") {
            continue;  // other rules draft without a static cache: they read nothing of the file
        }
        const std::optional<fuzz::Drafts> got = variant.standard.use(bytes);
        if (accepted.value_or(got.has_value()) != got.has_value()) {
            fuzz::finding(std::string(variant.name) + " and another variant disagree on the file");
        }
        accepted = got.has_value();
        if (got && first.try_emplace(fuzz::group_of(variant), *got).first->second != *got) {
            fuzz::finding(std::string(variant.name) + " drafts otherwise than its group");
        }
    }
    return 0;
}
