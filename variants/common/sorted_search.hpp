// Binary search whose number of rounds depends only on the length of the list.
#pragma once

#include <cstddef>

#include "common/types.hpp"

namespace ladder {

// The last of `length` >= 1 entries sorted by token that is not above `token`, or the first if all are.
// The range shrinks by half whatever is read, so no round waits to learn whether there is a next one, and
// only the base pointer depends on the data, by a conditional move.
inline const Successor* last_not_above(const Successor* base, std::size_t length, Token token) {
    while (length > 1) {
        const std::size_t half = length / 2;
        const Successor* const middle = base + half;
        // Neither outcome is more likely: say so, or compilers turn the move back into a branch.
#if defined(__clang__)
        base = __builtin_unpredictable(middle->token <= token) ? middle : base;
#else
        base = __builtin_expect_with_probability(middle->token <= token, 1, 0.5) ? middle : base;
#endif
        length -= half;
    }
    return base;
}

}  // namespace ladder
