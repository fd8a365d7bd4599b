// Binary search whose number of rounds depends only on the length of the list.
#pragma once

#include <algorithm>
#include <cstddef>

#include "base/types.hpp"

namespace ladder {

// The last of `length` >= 1 entries sorted by token that is not above `token`, or the first if all are.
// The range shrinks by half whatever is read, so no round waits to learn whether there is a next one, and
// only the base pointer depends on the data: by a conditional move, or by a mask where there is none.
inline const Successor* last_not_above(const Successor* base, std::size_t length, Token token) {
    while (length > 1) {
        const std::size_t half = length / 2;
        const Successor* const middle = base + half;
#if defined(__clang__)
        // Clang 14 makes a branch of the move on x86-64 even where it is told that neither outcome is likely,
        // and of plain arithmetic too. It must not see where the mask comes from.
        std::size_t mask = -static_cast<std::size_t>(middle->token <= token);
        __asm__("" : "+r"(mask));
        base += half & mask;
#else
        // Neither outcome is more likely: say so, or the compiler turns the move back into a branch.
        base = __builtin_expect_with_probability(middle->token <= token, 1, 0.5) ? middle : base;
#endif
        length -= half;
    }
    return base;
}

// How a sorted list is searched: closest() gives the entry of `token`, or where it is missing one beside its
// place. `length` is at least 1.
struct FixedRoundSearch {
    static const Successor* closest(const Successor* base, std::size_t length, Token token) {
        return last_not_above(base, length, token);
    }
};

// The library's search: whether there is a next round depends on what the last one read.
struct LowerBoundSearch {
    static const Successor* closest(const Successor* base, std::size_t length, Token token) {
        const Successor* const end = base + length;
        const Successor* const place = std::lower_bound(
            base, end, token, [](const Successor& entry, Token wanted) { return entry.token < wanted; });
        return place == end ? end - 1 : place;
    }
};

}  // namespace ladder
