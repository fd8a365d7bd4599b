// llama.cpp's own n-gram cache: the code that copying_map restates, called the way its lookup tools call it.
// Nothing is decided here; the caches, the thresholds and the merge are upstream's.
#pragma once

#include <ngram-cache.h>

#include <stdlib.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.hpp"
#include "containers/successors.hpp"
#include "drafting/drafter.hpp"
#include "peers/shared/push_draft.hpp"

namespace ladder {

class LlamaNgramCache {
public:
    static constexpr std::string_view rule = "llama";
    static constexpr Ties ties = Ties::iteration;
    static constexpr StaticFormat static_format = StaticFormat::llama;

    void load(const StaticSource& source) {
        source.require(StaticFormat::llama);
        static_ = source.in_memory() ? load_bytes(source.bytes()) : common_ngram_cache_load(source.name());
    }

    void draft(std::span<const Token> sequence, int n_draft, DraftBuffer& out) {
        follow(sequence);
        draft_.assign(1, sequence.back());  // upstream wants the last token in front and leaves it there
        common_ngram_cache_draft(tokens_, draft_, n_draft, LLAMA_NGRAM_MIN, LLAMA_NGRAM_MAX, context_,
                                 dynamic_, static_);
        push_draft(std::span(draft_).subspan(1), n_draft, out);
    }

    void update(std::span<const Token> sequence) {
        follow(sequence);
        common_ngram_cache_update(context_, LLAMA_NGRAM_MIN, LLAMA_NGRAM_MAX, tokens_, 1, false);
    }

    void end_chunk() {
        common_ngram_cache_merge(dynamic_, context_);
        discard_context();
    }

    void discard_context() {
        context_.clear();
        tokens_.clear();
    }
    void discard_dynamic() { dynamic_.clear(); }

    std::size_t static_bytes() const { return bytes_of(static_); }
    std::size_t memory_bytes() const { return static_bytes() + bytes_of(context_) + bytes_of(dynamic_); }

private:
    // Upstream reads a vector of its own, which grows with the sequence.
    void follow(std::span<const Token> sequence) {
        for (std::size_t i = tokens_.size(); i < sequence.size(); ++i) {
            tokens_.push_back(sequence[i]);
        }
    }

    // Upstream loads files alone; tests build thousands of small caches in memory.
    static common_ngram_cache load_bytes(std::span<const std::byte> bytes) {
        std::string name = (std::filesystem::temp_directory_path() / "ladder-cache-XXXXXX").string();
        const int descriptor = mkstemp(name.data());
        if (descriptor < 0) {
            throw InputError(name + ": cannot be written; set TMPDIR to a folder that can");
        }
        close(descriptor);
        std::ofstream(name, std::ios::binary)
            .write(static_cast<const char*>(static_cast<const void*>(bytes.data())),
                   static_cast<std::streamsize>(bytes.size()));
        common_ngram_cache loaded = common_ngram_cache_load(name);
        std::filesystem::remove(name);
        return loaded;
    }

    std::vector<Token> tokens_;
    std::vector<Token> draft_;
    common_ngram_cache context_;
    common_ngram_cache dynamic_;
    common_ngram_cache static_;
};

}  // namespace ladder
