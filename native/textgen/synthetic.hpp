// A seeded source of token streams whose n-gram statistics are those of English text; what its parameters
// were fitted to stands in harness/text/synthetic.py.
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
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "base/hash.hpp"
#include "base/types.hpp"

namespace ladder::synthetic {

// --- arithmetic -----------------------------------------------------------------------------------------

inline constexpr int log_bits = 24;  // fractional bits of a logarithm to base 2
inline constexpr std::int64_t log_one = std::int64_t{1} << log_bits;

__extension__ using Wide = unsigned __int128;

[[nodiscard]] constexpr std::uint64_t square_root(Wide value) noexcept {
    Wide root = 0;
    for (Wide bit = Wide{1} << 63; bit != 0; bit >>= 1) {
        const Wide candidate = root | bit;
        if (candidate * candidate <= value) {
            root = candidate;
        }
    }
    return static_cast<std::uint64_t>(root);
}

// log2 and 2^x in fixed point: tables of 4096 steps, straight lines between.
class FixedMath {
public:
    FixedMath() {
        std::array<std::uint64_t, table_bits> roots{};  // 2^(1/2), 2^(1/4), ... with 62 fractional bits
        std::uint64_t power = std::uint64_t{2} << 62;
        for (std::uint64_t& root : roots) {
            power = square_root(Wide{power} << 62);
            root = power;
        }
        for (std::size_t i = 0; i <= steps; ++i) {
            exp2_[i] = exp2_entry(i, roots);
            log2_[i] = log2_entry(i);
        }
    }

    // -log2(value / 2^64) for value > 0: 0 to 64, log_bits fractional bits.
    [[nodiscard]] std::int64_t minus_log2(std::uint64_t value) const noexcept {
        const int zeros = std::countl_zero(value);
        const std::uint64_t mantissa = (value << zeros) << 1;  // fraction after the leading one
        const std::size_t index = mantissa >> (64 - table_bits);
        const auto part = static_cast<std::int64_t>((mantissa << table_bits) >> (64 - log_bits));
        const std::int64_t fraction = log2_[index] + (((log2_[index + 1] - log2_[index]) * part) >> log_bits);
        return (std::int64_t{zeros} + 1) * log_one - fraction;
    }

    // 2^exponent with `value_bits` fractional bits; exponents beyond 2^40 are cut to it.
    static constexpr int value_bits = 20;
    [[nodiscard]] std::uint64_t exp2(std::int64_t exponent) const noexcept {
        const std::int64_t whole = std::min<std::int64_t>(exponent >> log_bits, 40);
        if (whole < -value_bits) {
            return 0;
        }
        const auto fraction = static_cast<std::uint64_t>(exponent & (log_one - 1));
        const std::size_t index = fraction >> (log_bits - table_bits);
        const std::uint64_t part = fraction & ((1U << (log_bits - table_bits)) - 1);
        const std::uint64_t low = exp2_[index];
        const std::uint64_t mantissa = low + (((exp2_[index + 1] - low) * part) >> (log_bits - table_bits));
        const std::int64_t shift = mantissa_bits - value_bits - whole;
        return shift >= 0 ? mantissa >> shift : mantissa << -shift;
    }

private:
    static constexpr int table_bits = 12;
    static constexpr std::size_t steps = std::size_t{1} << table_bits;
    static constexpr int mantissa_bits = 40;

    [[nodiscard]] static std::uint64_t exp2_entry(std::size_t i,
                                                  const std::array<std::uint64_t, table_bits>& roots) {
        if (i == steps) {
            return std::uint64_t{2} << mantissa_bits;
        }
        std::uint64_t product = std::uint64_t{1} << 62;
        for (std::size_t bit = 0; bit < table_bits; ++bit) {
            if ((i >> (table_bits - 1 - bit)) & 1) {
                product = static_cast<std::uint64_t>((Wide{product} * roots[bit]) >> 62);
            }
        }
        return product >> (62 - mantissa_bits);
    }

    // log2(1 + i / steps), bit by bit: squaring doubles a logarithm.
    [[nodiscard]] static std::int64_t log2_entry(std::size_t i) {
        if (i == steps) {
            return log_one;
        }
        std::uint64_t value = (std::uint64_t{1} << 62) + (std::uint64_t{i} << (62 - table_bits));
        std::int64_t result = 0;
        for (int bit = 0; bit < log_bits; ++bit) {
            const Wide square = (Wide{value} * value) >> 62;
            const bool carry = square >= (Wide{2} << 62);
            value = static_cast<std::uint64_t>(carry ? square >> 1 : square);
            result = (result << 1) | (carry ? 1 : 0);
        }
        return result;
    }

    std::array<std::uint64_t, steps + 1> exp2_{};
    std::array<std::int64_t, steps + 1> log2_{};
};

// The salts keep the uses of one seed apart; all odd, with mixed bits.
[[nodiscard]] inline std::uint64_t mix(std::uint64_t a, std::uint64_t b) noexcept {
    const std::uint64_t folded = multiply_fold(a ^ 0x9e3779b97f4a7c15ULL, b ^ 0xd1b54a32d192ed03ULL);
    return multiply_fold(folded ^ 0x8ebc6af09c88c6e3ULL, 0x589965cc75374cc3ULL ^ b);
}

class Random {
public:
    explicit Random(std::uint64_t seed) noexcept : state_(mix(seed, 0x1d8e4e27c47d124fULL)) {}

    [[nodiscard]] std::uint64_t next() noexcept {
        state_ += 0xa0761d6478bd642fULL;
        return multiply_fold(state_, state_ ^ 0xe7037ed1a0b428dbULL);
    }

    // 0 to limit - 1.
    [[nodiscard]] std::uint64_t below(std::uint64_t limit) noexcept {
        return static_cast<std::uint64_t>((Wide{next()} * limit) >> 64);
    }

private:
    std::uint64_t state_;
};

// --- parameters -----------------------------------------------------------------------------------------

// Knots of a curve; between two of them it is a straight line (word frequencies: in both logarithms).
using Knots = std::vector<std::pair<std::uint32_t, double>>;

// Weights of a context's atoms: P(atom >= k) = (1 + k / scale) ^ -(1 / discount - 1), so that n draws meet
// some n^discount different atoms. log2 of the scale is normally distributed over the contexts. A share
// `head` of the draws has (1 + k / head_scale) ^ -1 instead: frequent words have favourites and long tails at
// once.
struct Branching {
    double discount = 0.8;
    double scale_log2 = 0;
    double head = 0;
    double head_scale_log2 = 0;
    double spread_log2 = 0;    // standard deviation between contexts
    double frequent_log2 = 0;  // added for each doubling of the last token's frequency
};

struct Parameters {
    std::uint32_t vocabulary = 131072;
    Knots frequencies;            // (rank, occurrences per million), rank from 1
    Branching bigram;             // successors of one token
    Branching trigram;            // successors of two tokens
    double openness = 0;          // how much of a token's own bigram spread its trigram contexts share
    std::vector<double> copy;     // [m]: probability to go on as the document did after the same m tokens
    double copy_spread_log2 = 0;  // tokens differ: a probability is raised to a power, normal in log2 ...
    double copy_pair_spread_log2 = 0;  // ... the same between pairs, for matches of two and more ...
    double copy_frequent_log2 = 0;     // ... and greater by this for each doubling of the token's frequency
    double jump = 0;                   // probability to take any token of the document instead
    Knots document_tokens;             // (per mille of documents, at most so many tokens)
};

inline constexpr std::size_t longest_match = 8;
inline constexpr std::size_t document_limit = std::size_t{1} << 16;

[[nodiscard]] inline std::int64_t to_log(double value) {
    return static_cast<std::int64_t>(value * static_cast<double>(log_one));
}

// Of two tokens alike in their copying: powers of 2 from 2^-8 to 2^8 in steps of 2^(1/4).
inline constexpr int copy_classes = 64;

// A probability as a threshold for a uniform 32-bit number.
[[nodiscard]] inline std::uint64_t to_threshold(double probability) {
    return static_cast<std::uint64_t>(probability * 4294967296.0);
}

inline void require(bool condition, const std::string& key, const std::string& problem) {
    if (!condition) {
        throw InputError("synthetic parameters: " + key + ": " + problem + "; correct it");
    }
}

// The inverse of the distribution that Branching states.
class AtomSampler {
public:
    AtomSampler() = default;
    explicit AtomSampler(const Branching& branching)
        : step(to_log(branching.spread_log2) / 4),
          exponent_(exponent_of(branching.discount)),
          scale_(to_log(branching.scale_log2)),
          head_scale_(to_log(branching.head_scale_log2)),
          head_(static_cast<std::uint64_t>(branching.head * 65536)) {}

    // Which atom a uniform number means in a context whose scales are moved by `shift`.
    [[nodiscard]] std::uint64_t atom(const FixedMath& math, std::uint64_t random,
                                     std::int64_t shift) const noexcept {
        const bool head = (random & 0xffff) < head_;  // the low bits choose, the high bits measure
        const std::int64_t scale = shift + (head ? head_scale_ : scale_);
        const std::int64_t steepness = head ? one : exponent_;
        const std::int64_t tail = (math.minus_log2(random | 0xffff) * steepness) >> exponent_bits;
        return (math.exp2(scale + tail) - math.exp2(scale)) >> FixedMath::value_bits;
    }

    std::int64_t step = 0;  // of log2 of the scale, for a quarter of a standard deviation

private:
    static constexpr int exponent_bits = 16;
    static constexpr std::int64_t one = std::int64_t{1} << exponent_bits;

    static std::int64_t exponent_of(double discount) {
        return static_cast<std::int64_t>(discount / (1 - discount) * static_cast<double>(one));
    }

    std::int64_t exponent_ = one;
    std::int64_t scale_ = 0;
    std::int64_t head_scale_ = 0;
    std::uint64_t head_ = 0;
};

// --- the language ---------------------------------------------------------------------------------------

// Tokens are ranks here (0 is the most frequent); `id` makes ids of them, in an order without meaning.
class Language {
public:
    Language(const Parameters& parameters, std::uint64_t seed)
        : parameters_(checked(parameters)), seed_(mix(seed, 0x6c62272e07bb0142ULL)) {
        make_frequencies();
        make_contexts();
        make_copy_thresholds();
        make_ids();
    }

    [[nodiscard]] const Parameters& parameters() const noexcept { return parameters_; }
    [[nodiscard]] std::size_t memory_bytes() const noexcept {
        return frequency_log2_.size() * sizeof(std::int64_t) + upper_ends_.size() * sizeof(std::uint64_t) +
               guide_.size() * sizeof(std::uint32_t) + contexts_.size() * sizeof(TokenContext) +
               ids_.size() * sizeof(Token) + sizeof(FixedMath);
    }
    [[nodiscard]] Token id(std::uint32_t rank) const noexcept { return ids_[rank]; }

    // The token after (first, second); `random` is uniform over 64 bits.
    [[nodiscard]] std::uint32_t next(std::uint32_t first, std::uint32_t second,
                                     std::uint64_t random) const noexcept {
        const TokenContext& context = contexts_[second];
        const std::uint64_t pair = mix(context.hash, first);
        // A sum of 64 coins is near enough to a normal distribution, with a standard deviation of 4.
        const std::int64_t deviation = std::popcount(pair) - 32;
        const std::uint64_t of_pair =
            trigram_.atom(math_, random, context.trigram_shift + deviation * trigram_.step);
        const std::uint64_t of_token = bigram_.atom(math_, mix(pair, of_pair), context.bigram_shift);
        return draw(mix(context.hash, of_token ^ 0x2545f4914f6cdd1dULL));
    }

    // The 32-bit threshold of the probability to go on as the document did after the same `match` tokens, of
    // which `second` is the last, and `first` the one before if `match` is not 1.
    [[nodiscard]] std::uint64_t copy_threshold(std::uint32_t first, std::uint32_t second,
                                               std::size_t match) const noexcept {
        const TokenContext& context = contexts_[second];
        std::int64_t power = context.copy_power;
        if (match > 1) {
            power = power / 2 + (std::popcount(mix(context.hash, ~std::uint64_t{first})) - 32) * copy_step_;
        }
        const std::int64_t number = (power + log_one / 8) >> (log_bits - 2);
        const auto copy_class = static_cast<std::size_t>(
            std::clamp<std::int64_t>(number + copy_classes / 2, 0, copy_classes - 1));
        const std::size_t length = std::min(match, parameters_.copy.size() - 1);
        return copy_thresholds_[copy_class * parameters_.copy.size() + length];
    }

    // A token without context.
    [[nodiscard]] std::uint32_t draw(std::uint64_t random) const noexcept {
        const std::size_t bucket = random >> (64 - guide_bits);
        std::uint32_t low = guide_[bucket];
        std::uint32_t high = guide_[bucket + 1];
        while (low < high) {  // the first rank whose upper end lies above
            const std::uint32_t middle = (low + high) / 2;
            if (upper_ends_[middle] > random) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        return low;
    }

private:
    struct TokenContext {
        std::uint64_t hash;
        std::int64_t bigram_shift;  // of log2 of the scale
        std::int64_t trigram_shift;
        std::int64_t copy_power;  // log2 of the power that copy probabilities are raised to
    };
    static constexpr int guide_bits = 16;

    static const Parameters& checked(const Parameters& parameters) {
        require(parameters.vocabulary >= 2 && parameters.vocabulary < (1U << 30), "vocabulary",
                "is not in 2 to 2^30");
        for (const Branching* branching : {&parameters.bigram, &parameters.trigram}) {
            require(branching->discount > 0 && branching->discount < 0.98, "discount", "is not in (0, 0.98)");
            require(branching->scale_log2 > -30 && branching->scale_log2 < 30, "scale_log2",
                    "is not in (-30, 30)");
            require(branching->spread_log2 >= 0 && branching->spread_log2 < 10, "spread_log2",
                    "is not in [0, 10)");
            require(branching->head >= 0 && branching->head <= 1, "head", "is not a probability");
            require(branching->head_scale_log2 > -30 && branching->head_scale_log2 < 30, "head_scale_log2",
                    "is not in (-30, 30)");
        }
        for (const Knots* knots : {&parameters.frequencies, &parameters.document_tokens}) {
            require(knots->size() >= 2, "knots", "are fewer than two");
            for (std::size_t i = 0; i < knots->size(); ++i) {
                require((*knots)[i].second > 0, "knots", "have a value that is not above 0");
                require(i == 0 || (*knots)[i].first > (*knots)[i - 1].first, "knots", "do not ascend");
            }
        }
        require(parameters.frequencies.front().first >= 1, "frequencies", "ranks start at 1");
        require(!parameters.copy.empty(), "copy", "is empty");
        for (const double probability : parameters.copy) {
            require(probability >= 0 && probability <= 1, "copy", "is not a probability");
        }
        require(parameters.copy.size() <= longest_match, "copy", "is longer than 8");
        require(parameters.copy_spread_log2 >= 0 && parameters.copy_spread_log2 < 10, "copy_spread_log2",
                "is not in [0, 10)");
        require(parameters.copy_pair_spread_log2 >= 0 && parameters.copy_pair_spread_log2 < 10,
                "copy_pair_spread_log2", "is not in [0, 10)");
        require(std::abs(parameters.copy_frequent_log2) < 10, "copy_frequent_log2", "is not in (-10, 10)");
        require(parameters.jump >= 0 && parameters.jump <= 1, "jump", "is not a probability");
        return parameters;
    }

    // log2 of the frequency per million of a rank from 1.
    [[nodiscard]] std::int64_t frequency_log2(std::uint32_t rank) const {
        const Knots& knots = parameters_.frequencies;
        std::size_t right = 1;
        while (right + 1 < knots.size() && knots[right].first < rank) {
            ++right;
        }
        const auto& [rank0, value0] = knots[right - 1];
        const auto& [rank1, value1] = knots[right];
        const std::int64_t x0 = log2_of(rank0);
        const std::int64_t span = log2_of(rank1) - x0;
        const std::int64_t y0 = log2_of_value(value0);
        return y0 + (log2_of_value(value1) - y0) * ((log2_of(rank) - x0) >> 4) / (span >> 4);
    }

    [[nodiscard]] std::int64_t log2_of(std::uint64_t value) const {
        return 64 * log_one - math_.minus_log2(value);
    }
    [[nodiscard]] std::int64_t log2_of_value(double value) const {  // 24 bits before, 24 after the point
        return log2_of(static_cast<std::uint64_t>(value * 16777216.0) | 1) - 24 * log_one;
    }

    void make_frequencies() {
        std::vector<std::uint64_t> weights(parameters_.vocabulary);
        Wide total = 0;
        for (std::uint32_t rank = 0; rank < parameters_.vocabulary; ++rank) {
            frequency_log2_.push_back(frequency_log2(rank + 1));
            weights[rank] = math_.exp2(frequency_log2_[rank] + 16 * log_one);
            total += weights[rank];
        }
        require(total > 0, "frequencies", "are all 0");
        Wide sum = 0;
        for (const std::uint64_t weight : weights) {
            sum += weight;
            upper_ends_.push_back(static_cast<std::uint64_t>(((sum << 63) / total) << 1) - 1);
        }
        upper_ends_.back() = ~std::uint64_t{0};
        guide_.resize((std::size_t{1} << guide_bits) + 1);
        std::uint32_t rank = 0;
        for (std::size_t bucket = 0; bucket + 1 < guide_.size(); ++bucket) {
            while (upper_ends_[rank] <= std::uint64_t{bucket} << (64 - guide_bits)) {
                ++rank;
            }
            guide_[bucket] = rank;
        }
        guide_.back() = parameters_.vocabulary - 1;
    }

    void make_contexts() {
        bigram_ = AtomSampler(parameters_.bigram);
        trigram_ = AtomSampler(parameters_.trigram);
        const std::int64_t shared = to_log(parameters_.openness) / 4;
        const auto slope = [](double value) { return static_cast<std::int64_t>(value * 65536); };
        const std::int64_t bigram_slope = slope(parameters_.bigram.frequent_log2);
        const std::int64_t trigram_slope = slope(parameters_.trigram.frequent_log2);
        for (std::uint32_t rank = 0; rank < parameters_.vocabulary; ++rank) {
            const std::uint64_t hash = mix(seed_, rank);
            const std::int64_t deviation = std::popcount(mix(hash, 1)) - 32;
            const std::int64_t frequency = frequency_log2_[rank];
            contexts_.push_back({hash, deviation * bigram_.step + ((frequency * bigram_slope) >> 16),
                                 deviation * shared + ((frequency * trigram_slope) >> 16),
                                 copy_power(mix(hash, 2), frequency)});
        }
    }

    // Words in the middle of the frequencies (8 doublings above one per million) copy as `copy` says.
    [[nodiscard]] std::int64_t copy_power(std::uint64_t hash, std::int64_t frequency) const {
        const auto slope = static_cast<std::int64_t>(parameters_.copy_frequent_log2 * 65536);
        return (std::popcount(hash) - 32) * (to_log(parameters_.copy_spread_log2) / 4) +
               (((frequency - 8 * log_one) * slope) >> 16);
    }

    void make_copy_thresholds() {
        copy_step_ = to_log(parameters_.copy_pair_spread_log2) / 4;
        for (int number = 0; number < copy_classes; ++number) {
            const auto power =
                static_cast<std::int64_t>(math_.exp2((number - copy_classes / 2) * (log_one / 4)));
            for (const double probability : parameters_.copy) {
                const std::uint64_t threshold = to_threshold(probability);
                const std::int64_t logarithm =
                    math_.minus_log2(std::max<std::uint64_t>(threshold, 1) << 31) - log_one;
                const std::int64_t raised = (logarithm * power) >> FixedMath::value_bits;
                copy_thresholds_.push_back(
                    threshold == 0 ? 0 : math_.exp2(32 * log_one - raised) >> FixedMath::value_bits);
            }
        }
    }

    void make_ids() {
        Random random(mix(seed_, 0x4f1bbcdcbfa53e0bULL));
        for (std::uint32_t rank = 0; rank < parameters_.vocabulary; ++rank) {
            ids_.push_back(static_cast<Token>(rank));
        }
        for (std::size_t i = ids_.size(); i > 1; --i) {
            std::swap(ids_[i - 1], ids_[random.below(i)]);
        }
    }

    FixedMath math_;
    Parameters parameters_;
    std::uint64_t seed_;
    AtomSampler bigram_;
    AtomSampler trigram_;
    std::vector<std::int64_t> frequency_log2_;
    std::vector<std::uint64_t> upper_ends_;  // of a rank's share of the 64-bit numbers
    std::vector<std::uint32_t> guide_;
    std::vector<TokenContext> contexts_;
    std::int64_t copy_step_ = 0;
    std::vector<std::uint64_t> copy_thresholds_;  // [class][match]
    std::vector<Token> ids_;
};

// --- documents ------------------------------------------------------------------------------------------

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
