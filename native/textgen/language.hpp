// The synthetic language: which token follows which, by parameters and a seed.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/types.hpp"
#include "textgen/fixed_math.hpp"
#include "textgen/parameters.hpp"

namespace ladder::synthetic {

[[nodiscard]] inline std::int64_t to_log(double value) {
    return static_cast<std::int64_t>(value * static_cast<double>(log_one));
}

// Of two tokens alike in their copying: powers of 2 from 2^-8 to 2^8 in steps of 2^(1/4).
inline constexpr int copy_classes = 64;

// A probability as a threshold for a uniform 32-bit number.
[[nodiscard]] inline std::uint64_t to_threshold(double probability) {
    return static_cast<std::uint64_t>(probability * 4294967296.0);
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

}  // namespace ladder::synthetic
