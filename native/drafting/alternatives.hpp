// A variant's alternatives: one drafter for each combination of its axes' values. What is made of a drafter
// (a session for Python, a run of a program, a fuzzed replay) is up to whoever includes a folder's
// module.cpp.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "drafting/drafter.hpp"

namespace ladder {

using Options = std::map<std::string, std::string>;  // axis -> value

// The values of its axes that choose it, what the drafter says of itself, and what is made of it.
template <class Use>
struct Alternative {
    Options options;
    std::string_view rule;
    Ties ties;
    StaticFormat static_format;
    std::vector<std::string> capabilities;
    void (*convert)(const std::string& source, const std::string& target);  // null: llama.cpp's format
    Use use;
};

// What a drafter can do beyond the concept: callers ask before they call.
template <Drafter D>
std::vector<std::string> capabilities_of() {
    std::vector<std::string> found;
    const auto note = [&](bool able, const char* name) {
        if (able) {
            found.emplace_back(name);
        }
    };
    note(Forgetful<D>, "forget");
    note(requires(D drafter) { drafter.prefault_static(); }, "prefault_static");
    note(requires(const D& drafter) { drafter.static_figures(); }, "static_figures");
    note(requires(const D& drafter) { drafter.token_limit(); }, "token_limit");
    note(requires(D drafter) { drafter.verify_static(); }, "verify_static");
    return found;
}

template <Drafter D, class Use>
Alternative<Use> alternative_of(Options options, Use use) {
    Alternative<Use> made{std::move(options),   D::rule, D::ties, D::static_format,
                          capabilities_of<D>(), nullptr, use};
    if constexpr (requires(const std::string& path) { D::convert(path, path); }) {
        made.convert = [](const std::string& source, const std::string& target) {
            D::convert(source, target);
        };
    }
    return made;
}

// Of one variant, the default one first.
template <class Use>
class Alternatives {
public:
    explicit Alternatives(std::vector<Alternative<Use>> all) : all_(std::move(all)) {
        LADDER_CHECK(!all_.empty());
    }

    const Alternative<Use>& standard() const { return all_.front(); }

    // The one that has all the wanted values, the default's where nothing is said. InputError names the axis.
    const Alternative<Use>& choose(const Options& wanted) const {
        Options full = standard().options;
        for (const auto& [axis, value] : wanted) {
            if (!full.contains(axis)) {
                throw InputError("axis '" + axis + "': this variant has no such axis; use " + axis_names());
            }
            full[axis] = value;
        }
        for (const Alternative<Use>& one : all_) {
            if (one.options == full) {
                return one;
            }
        }
        for (const auto& [axis, value] : wanted) {
            const auto values = axes().at(axis);
            if (std::find(values.begin(), values.end(), value) == values.end()) {
                throw InputError("axis '" + axis + "': has no value '" + value + "'; use one of its values");
            }
        }
        throw InputError("axes: these values cannot be combined; change one at a time");
    }

    // Axis -> its values, the default first.
    std::map<std::string, std::vector<std::string>> axes() const {
        std::map<std::string, std::vector<std::string>> found;
        for (const Alternative<Use>& one : all_) {
            for (const auto& [axis, value] : one.options) {
                std::vector<std::string>& values = found[axis];
                if (std::find(values.begin(), values.end(), value) == values.end()) {
                    values.push_back(value);
                }
            }
        }
        return found;
    }

private:
    std::string axis_names() const {
        std::string text;
        for (const auto& [axis, values] : axes()) {
            text += (text.empty() ? "one of: " : ", ") + axis;
        }
        return text.empty() ? "none" : text;
    }

    std::vector<Alternative<Use>> all_;
};

}  // namespace ladder
