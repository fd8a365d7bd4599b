// What a variant has to be, and the small things every drafter works with.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/types.hpp"
#include "formats/static_source.hpp"

namespace ladder {

// What a static file says of itself.
struct StaticFigures {
    std::uint64_t n_bigrams;
    std::uint64_t n_successors;
};

// How equal scores are decided.
enum class Ties : std::uint8_t {
    iteration,  // first maximum in iteration order of a std::unordered_map
    token,      // smallest token id
};

constexpr const char* name_of(Ties ties) {
    return ties == Ties::iteration ? "iteration" : "token";
}

// The tokens of one draft, written straight into memory that its owner reserved.
class DraftBuffer {
public:
    DraftBuffer() = default;
    explicit DraftBuffer(Token* first) : first_(first) {}

    void push(Token token) { first_[size_++] = token; }
    int size() const { return size_; }
    Token operator[](int i) const { return first_[i]; }
    const Token* begin() const { return first_; }
    const Token* end() const { return first_ + size_; }

private:
    Token* first_ = nullptr;
    int size_ = 0;
};

// The last tokens of a sequence, sliding forward as tokens are drafted.
class Window {
public:
    explicit Window(std::span<const Token> sequence)
        : length_(static_cast<int>(std::min<std::size_t>(sequence.size(), ngram_max))) {
        for (int i = 0; i < length_; ++i) {
            tokens_[ngram_max - length_ + i] =
                sequence[sequence.size() - static_cast<std::size_t>(length_ - i)];
        }
    }

    void push(Token token) {
        tokens_[0] = tokens_[1];
        tokens_[1] = tokens_[2];
        tokens_[2] = tokens_[3];
        tokens_[3] = token;
        length_ = std::min(length_ + 1, ngram_max);
    }

    // Longest n-gram the sequence is long enough for.
    int length() const { return length_; }

    std::span<const Token> last(int n) const {
        return {tokens_ + (ngram_max - n), static_cast<std::size_t>(n)};
    }
    Ngram ngram(int n) const { return Ngram(last(n)); }
    // One token of the window, the newest last; null_token where the sequence is shorter.
    Token operator[](int i) const { return tokens_[i]; }
    Bigram bigram() const { return {tokens_[2], tokens_[3]}; }

private:
    Token tokens_[ngram_max] = {null_token, null_token, null_token, null_token};
    int length_;
};

// A drafter chooses drafts by a rule; those of one rule and one way with ties must draft identically.
//   rule, ties which group it belongs to: a name such as "llama", and how it decides between equals
//   load       reads the static cache, once, before anything else
//   draft      appends 0..n_draft tokens to `out`; counts nothing
//   update     counts the last token of `sequence`, which was just appended, in the context cache
//   end_chunk  adds the context cache to the dynamic one and empties it
// `sequence` is everything since the chunk began. Static bytes are what the static cache asked the allocator
// for (without the allocator's own overhead); memory_bytes() is that of all three caches.
template <class D>
concept Drafter = std::default_initializable<D> &&
                  requires(D drafter, const D& read_only, const StaticSource& source,
                           std::span<const Token> sequence, int n_draft, DraftBuffer& out) {
                      { D::rule } -> std::convertible_to<std::string_view>;
                      { D::ties } -> std::convertible_to<Ties>;
                      { D::static_format } -> std::convertible_to<StaticFormat>;
                      drafter.load(source);
                      drafter.draft(sequence, n_draft, out);
                      drafter.update(sequence);
                      drafter.end_chunk();
                      { read_only.static_bytes() } -> std::convertible_to<std::size_t>;
                      { read_only.memory_bytes() } -> std::convertible_to<std::size_t>;
                  };

// What generation needs beyond a replay: to take text back (rejected, or rolled back by the user).
//   discard_context  empties the context cache without a merge
//   discard_dynamic  empties the dynamic cache
template <class D>
concept Forgetful = requires(D drafter) {
    drafter.discard_context();
    drafter.discard_dynamic();
};

}  // namespace ladder
