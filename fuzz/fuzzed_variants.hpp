// Home of the variants' folders in a fuzz target: variants.inc includes every module.cpp, whose line lists
// its drafters here. Before it, the target defines in ladder::fuzz:
//   Use        a function pointer, whose result says everything that drafters of one group must agree on
//   decide<D>  such a function for drafter D
#pragma once

#include <vector>

#include "drafting/alternatives.hpp"

namespace ladder::fuzz {

struct Variant {
    const char* name;
    Alternative<Use> standard;
};

inline std::vector<Variant>& variants() {
    static std::vector<Variant> all;
    return all;
}

inline bool enlist(const char* name, std::vector<Alternative<Use>> all) {
    variants().push_back({name, Alternatives<Use>(std::move(all)).standard()});
    return true;
}

// Drafters of one group must draft alike.
using Group = std::pair<std::string_view, Ties>;

inline Group group_of(const Variant& variant) {
    return {variant.standard.rule, variant.standard.ties};
}

}  // namespace ladder::fuzz

namespace ladder {

template <Drafter D>
Alternative<fuzz::Use> alternative(Options options = {}) {
    return alternative_of<D, fuzz::Use>(std::move(options), fuzz::decide<D>);
}

}  // namespace ladder

#define LADDER_VARIANT_MODULE(variant, ...) \
    static const bool enlisted_##variant = ::ladder::fuzz::enlist(#variant, {__VA_ARGS__});
