// The frozen static cache as rung 5 and its ablations use it.
#pragma once

#include <optional>
#include <string>

#include "base/huge_pages.hpp"
#include "formats/freeze.hpp"
#include "formats/frozen_file.hpp"
#include "formats/static_source.hpp"

namespace ladder {

template <MapLayout layout, HugePages huge_pages = HugePages::off>
class FrozenStaticCache {
public:
    static constexpr StaticFormat format =
        layout == MapLayout::split ? StaticFormat::frozen : StaticFormat::paired;

    // A llama.cpp cache is frozen in memory first: handy in tests and for users, never what a run measures.
    void load(const StaticSource& source) {
        if (source.format() == StaticFormat::llama) {
            Source reader = source.open();
            MemorySink sink;
            static_cast<void>(freeze(reader, sink, layout));
            file_ = BasicFrozenFile<layout>::from_bytes(sink.take(), source.name());
            return;
        }
        source.require(format);
        file_ = source.in_memory() ? BasicFrozenFile<layout>::from_bytes(source.bytes(), source.name())
                                   : BasicFrozenFile<layout>::load(source.name(), huge_page_hook(huge_pages));
    }

    static void convert(const std::string& source, const std::string& target) {
        static_cast<void>(freeze(source, target, layout));
    }
    void verify() const { file_.verify(); }

    // The bigram's successors, none if it has no entry.
    std::optional<std::span<const Successor>> find(Bigram bigram) const {
        const std::span<const Successor> successors = file_.find(bigram);
        return successors.empty() ? std::nullopt : std::optional(successors);
    }

    std::size_t bytes() const { return file_.static_bytes(); }
    // One more than the largest token id in the cache.
    std::uint64_t token_limit() const { return file_.token_limit(); }

private:
    BasicFrozenFile<layout> file_;
};

}  // namespace ladder
