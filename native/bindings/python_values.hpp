// What every helper module says to Python: bytes and figures.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <utility>

#include "counting/bigram_counts.hpp"

namespace ladder {

// A dict of figures by name: what the stubs call it is the package's word for it.
class Figures : public nanobind::dict {
    NB_OBJECT_DEFAULT(Figures, nanobind::dict, "draft_ladder.base.interfaces.Figures", PyDict_Check)

public:
    void add(std::initializer_list<std::pair<const char*, std::uint64_t>> figures) {
        for (const auto& [name, figure] : figures) {
            (*this)[name] = figure;
        }
    }
};

[[nodiscard]] inline std::span<const std::byte> bytes_of(const nanobind::bytes& bytes) {
    return {reinterpret_cast<const std::byte*>(bytes.c_str()), bytes.size()};
}

[[nodiscard]] inline nanobind::bytes to_python(std::span<const std::byte> bytes) {
    return nanobind::bytes(bytes.data(), bytes.size());
}

// None where there is nothing to have a share of.
[[nodiscard]] inline nanobind::object python_share(std::uint64_t part, std::uint64_t whole) {
    if (whole == 0) {
        return nanobind::none();
    }
    return nanobind::float_(static_cast<double>(part) / static_cast<double>(whole));
}

[[nodiscard]] inline Figures python_counts(const CountReport& report) {
    Figures result;
    result.add({{"n_bigrams", report.n_bigrams}, {"n_pairs", report.n_pairs}, {"largest", report.largest}});
    result["single_share"] = python_share(report.n_single, report.n_bigrams);
    result["at_most_100_share"] = python_share(report.n_at_most_100, report.n_bigrams);
    return result;
}

}  // namespace ladder
