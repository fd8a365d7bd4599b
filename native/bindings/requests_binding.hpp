// The replay of requests for Python: an index of requests in, figures out.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "base/check.hpp"
#include "drafting/requests.hpp"

namespace ladder {

namespace nb = nanobind;

// Session, whether it continues there, tokens of the prompt, tokens of the response.
using RequestIndex = std::vector<std::tuple<std::uint32_t, bool, std::size_t, std::size_t>>;

inline History history_from(const std::string& name) {
    if (name == "all") {
        return History::all;
    }
    if (name == "session") {
        return History::session;
    }
    if (name == "none") {
        return History::none;
    }
    throw InputError("history: '" + name + "' is unknown; use all, session or none");
}

inline std::vector<Request> requests_from(const RequestIndex& index) {
    std::vector<Request> requests;
    requests.reserve(index.size());
    for (const auto& [session, continues, n_prompt, n_response] : index) {
        requests.push_back({session, continues, n_prompt, n_response});
    }
    return requests;
}

inline nb::list describe_histogram(const LatencyHistogram& histogram, double ns_per_tick) {
    nb::list buckets;
    histogram.for_each([&](double upper_ticks, std::uint64_t count) {
        buckets.append(nb::make_tuple(upper_ticks * ns_per_tick, count));
    });
    return buckets;
}

inline nb::dict describe(const RequestsResult& result, int n_draft) {
    std::uint64_t hit_calls = 0, n_drafted = 0, n_accept = 0, n_response = 0, n_learned = 0, judged = 0;
    double tokens_per_call_sum = 0;
    for (const RequestFigures& request : result.requests) {
        hit_calls += request.hit_calls;
        n_drafted += request.n_drafted;
        n_accept += request.n_accept;
        n_response += request.n_response;
        n_learned += request.n_learned;
        if (request.calls != 0) {
            ++judged;
            tokens_per_call_sum +=
                static_cast<double>(request.n_response) / static_cast<double>(request.calls);
        }
    }
    std::vector<std::uint64_t> calls_by_drafted(static_cast<std::size_t>(n_draft) + 1);
    result.log.for_each([&](std::span<const Token> draft) { ++calls_by_drafted[draft.size()]; });

    nb::dict out, clock;
    out["n_requests"] = result.requests.size();
    out["n_judged_requests"] = judged;
    out["n_response_tokens"] = n_response;
    out["n_learned_tokens"] = n_learned;
    out["draft_calls"] = result.log.calls();
    out["hit_calls"] = hit_calls;
    out["n_drafted"] = n_drafted;
    out["n_accept"] = n_accept;
    out["calls_by_drafted"] = nb::cast(calls_by_drafted);
    out["tokens_per_call_sum_of_requests"] = tokens_per_call_sum;
    out["history_tokens"] = result.history_tokens;
    nb::dict histograms;
    const auto phase = [&](const char* name, const PhaseTime& time) {
        out[(std::string(name) + "_ns_total").c_str()] = static_cast<double>(time.total) * result.ns_per_tick;
        histograms[name] = describe_histogram(time.histogram, result.ns_per_tick);
    };
    phase("learn", result.learn);
    phase("draft", result.draft);
    phase("update", result.update);
    phase("commit", result.commit);
    out["histograms"] = histograms;
    clock["name"] = result.clock_name;
    clock["ns_per_reading"] = result.clock_ns_per_reading;
    clock["readings"] = 2 * (2 * result.requests.size() + 2 * result.log.calls() + result.requests.size());
    out["clock"] = clock;
    return out;
}

}  // namespace ladder
