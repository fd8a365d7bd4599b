// Counts of a static cache as Python sees them.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>

#include "counting/bigram_counts.hpp"

namespace ladder {

// None where there is nothing to have a share of.
[[nodiscard]] inline nanobind::object python_share(std::uint64_t part, std::uint64_t whole) {
    if (whole == 0) {
        return nanobind::none();
    }
    return nanobind::float_(static_cast<double>(part) / static_cast<double>(whole));
}

[[nodiscard]] inline nanobind::dict python_counts(const CountReport& report) {
    nanobind::dict result;
    result["n_bigrams"] = report.n_bigrams;
    result["n_pairs"] = report.n_pairs;
    result["single_share"] = python_share(report.n_single, report.n_bigrams);
    result["at_most_100_share"] = python_share(report.n_at_most_100, report.n_bigrams);
    result["largest"] = report.largest;
    return result;
}

}  // namespace ladder
