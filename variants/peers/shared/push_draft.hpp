// From a library's draft into ours, which has room for what was asked for and no more.
#pragma once

#include <span>
#include <stdexcept>
#include <string>

#include "drafting/drafter.hpp"

namespace ladder {

inline void push_draft(std::span<const Token> drafted, int n_draft, DraftBuffer& out) {
    if (drafted.size() > static_cast<std::size_t>(n_draft)) {
        throw std::runtime_error("drafted " + std::to_string(drafted.size()) + " tokens where " +
                                 std::to_string(n_draft) + " were asked for");
    }
    for (const Token token : drafted) {
        out.push(token);
    }
}

}  // namespace ladder
