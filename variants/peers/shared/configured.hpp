// A peer at other settings than its own: one class, told its settings when it is made. A template for each of
// them would be compiled once a value, for drafters whose time is not in our code.
#pragma once

#include <memory>
#include <utility>

#include "bindings/module.hpp"

namespace ladder {

template <class D, auto settings>
auto configured(Options options) {
    auto made = alternative<D>(std::move(options));
#ifndef LADDER_HOST  // elsewhere than in its module a peer has its own settings alone
    made.use = []() -> std::unique_ptr<AnySession> {
        auto session = std::make_unique<Session<D>>();
        session->drafter().configure(settings);
        return session;
    };
#endif
    return made;
}

}  // namespace ladder
