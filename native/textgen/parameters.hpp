// What a synthetic language is made of, and which of it is refused.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/check.hpp"

namespace ladder::synthetic {

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

inline void require(bool condition, const std::string& key, const std::string& problem) {
    if (!condition) {
        throw InputError("synthetic parameters: " + key + ": " + problem + "; correct it");
    }
}

// The parameters, if they make a language.
[[nodiscard]] inline const Parameters& checked(const Parameters& parameters) {
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

}  // namespace ladder::synthetic
