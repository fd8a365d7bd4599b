// A peer at other settings than its own: one class, told its settings when it is made. A template for each of
// them would be compiled once a value, for drafters whose time is not in our code.
#pragma once

#include <memory>
#include <utility>

#include "bindings/module.hpp"

namespace ladder {

template <class D, auto settings>
Alternative configured(Options options) {
    Alternative made = alternative<D>(std::move(options));
#ifndef LADDER_REPLAY_PROGRAM  // as a plain program a peer has its own settings alone
    made.make = [] {
        auto session = std::make_unique<Session<D>>();
        session->drafter().configure(settings);
        return std::unique_ptr<AnySession>(std::move(session));
    };
#endif
    return made;
}

}  // namespace ladder
