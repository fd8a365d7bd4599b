// A seeded source of token streams whose n-gram statistics are those of English text; what its parameters
// were fitted to stands in harness/draft_ladder/data/synthetic.py.
//
// The language is a hierarchical Pitman-Yor process in stick-breaking form: a context's successors are
// "atoms" 0, 1, 2, ... with power-law weights, and each atom is a draw from the next shorter context (trigram
// -> bigram -> unigram). Atoms are not stored: atom k of a context is the draw whose random number is the
// hash of (seed, context, k). So a token costs three table look-ups, a language needs 3 MB whatever the
// length of the text, and any document can be made without those before it.
//
// Over the language lies a document cache: a document repeats its own words and phrases. Its memory is that
// of one document (document_limit tokens).
//
// Integers only, so every compiler and machine gives the same tokens.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/types.hpp"
#include "textgen/language.hpp"

namespace ladder::synthetic {

// The documents of one stream, one after the other: the first n tokens are the same however many follow.
class Text {
public:
    Text(const Language& language, std::uint64_t stream_seed)
        : language_(language),
          stream_seed_(stream_seed),
          random_(0),
          document_(document_limit),
          last_of_pair_(table_size),
          last_of_token_(language.parameters().vocabulary) {
        jump_ = to_threshold(language.parameters().jump);
    }

    [[nodiscard]] std::uint64_t documents() const noexcept { return n_documents_; }
    [[nodiscard]] std::size_t memory_bytes() const noexcept {
        return document_.size() * sizeof(std::uint32_t) +
               (last_of_pair_.size() + last_of_token_.size()) * sizeof(Place);
    }

    void fill(std::span<Token> tokens) {
        for (Token& token : tokens) {
            if (size_ == end_) {
                begin_document();
            }
            const std::uint32_t rank = choose();
            append(rank);
            token = language_.id(rank);
        }
    }

private:
    static constexpr int table_bits = 17;
    static constexpr std::size_t table_size = std::size_t{1} << table_bits;
    static constexpr std::size_t nearest_copy = 24;  // copying from nearer by would run in circles
    static constexpr std::size_t longest_echo = 4;   // tokens that may equal those so near before
    struct Place {  // of a document; other documents' places are void, so that nothing need be cleared
        std::uint32_t document = 0;
        std::uint32_t position = 0;  // of the token that followed
    };

    void begin_document() {
        random_ = Random(mix(stream_seed_, ++n_documents_));
        stamp_ = static_cast<std::uint32_t>(n_documents_);
        size_ = 0;
        match_ = 0;
        end_ = document_length(random_.next());
    }

    [[nodiscard]] std::size_t document_length(std::uint64_t random) const {
        const Knots& knots = language_.parameters().document_tokens;
        const std::uint64_t share = (random >> 32) * 1000;  // per mille, 32 fractional bits
        std::size_t right = 1;
        while (right + 1 < knots.size() && std::uint64_t{knots[right].first} << 32 < share) {
            ++right;
        }
        const std::uint64_t x0 = std::uint64_t{knots[right - 1].first} << 32;
        const std::uint64_t width = std::uint64_t{knots[right].first - knots[right - 1].first} << 32;
        const auto y0 = static_cast<std::uint64_t>(knots[right - 1].second);
        const auto rise = static_cast<std::uint64_t>(knots[right].second) - y0;
        const std::uint64_t length = y0 + static_cast<std::uint64_t>(Wide{rise} * (share - x0) / width);
        return std::clamp<std::size_t>(length, 2, document_limit);
    }

    // As the document did before, some token of it, or what the language says.
    [[nodiscard]] std::uint32_t choose() {
        const std::uint64_t coins = random_.next();
        const bool near = match_ > 0 && size_ - source_ < nearest_copy;
        if (near && match_ >= longest_echo) {  // text does not go round in circles
            return language_.draw(random_.next());
        }
        if (match_ > 0 && !near &&
            (coins >> 32) < language_.copy_threshold(document_[size_ - std::min<std::size_t>(size_, 2)],
                                                     document_[size_ - 1], match_)) {
            return document_[source_];
        }
        if (size_ > 0 && (coins & 0xffffffffU) < jump_) {
            return document_[random_.below(size_)];
        }
        if (size_ < 2) {
            return size_ == 0 ? 0 : language_.draw(random_.next());
        }
        return language_.next(document_[size_ - 2], document_[size_ - 1], random_.next());
    }

    void append(std::uint32_t rank) {
        const bool follows = match_ > 0 && document_[source_] == rank;
        document_[size_++] = rank;
        if (follows) {
            ++source_;
            ++match_;
        } else {
            match_ = 0;
        }
        const auto next = static_cast<std::uint32_t>(size_);
        Place& of_token = last_of_token_[rank];
        if (size_ >= 2) {
            const std::uint32_t before = document_[size_ - 2];
            const std::uint64_t hash = (before * 0x9e3779b97f4a7c15ULL ^ rank) * 0xd1b54a32d192ed03ULL;
            Place& of_pair = last_of_pair_[hash >> (64 - table_bits)];
            if (match_ < 2) {
                find(of_pair, 2);
            }
            of_pair = {stamp_, next};
        }
        if (match_ < 1) {
            find(of_token, 1);
        }
        of_token = {stamp_, next};
    }

    // Takes an earlier place as the one to copy from, if its last tokens are the last tokens now.
    void find(Place place, std::size_t min_length) {
        if (place.document != stamp_) {
            return;
        }
        std::size_t length = 0;
        while (length < longest_match && length < place.position &&
               document_[place.position - 1 - length] == document_[size_ - 1 - length]) {
            ++length;
        }
        if (length >= min_length) {
            source_ = place.position;
            match_ = length;
        }
    }

    const Language& language_;
    std::uint64_t stream_seed_;
    Random random_;
    std::vector<std::uint32_t> document_;
    std::vector<Place> last_of_pair_;
    std::vector<Place> last_of_token_;
    std::uint64_t jump_ = 0;
    std::uint64_t n_documents_ = 0;
    std::uint32_t stamp_ = 0;
    std::size_t size_ = 0;
    std::size_t end_ = 0;
    std::size_t source_ = 0;  // where the document's earlier text goes on
    std::size_t match_ = 0;   // how many tokens before there equal the last ones
};

}  // namespace ladder::synthetic
