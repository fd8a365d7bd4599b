// What a replay found, as Python reads it: the measured part of a run record.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "drafting/replay.hpp"

namespace ladder {

namespace nb = nanobind;

inline nb::object describe_histogram(const ReplayResult& result) {
    if (!result.histogram) {
        return nb::none();
    }
    nb::list buckets;
    result.histogram->for_each([&](double upper_ticks, std::uint64_t count) {
        buckets.append(nb::make_tuple(upper_ticks * result.ns_per_tick, count));
    });
    return buckets;
}

inline nb::dict describe(const ReplayResult& result) {
    nb::dict out;
    out["n_tokens"] = result.n_tokens;
    out["n_chunks"] = result.n_chunks;
    out["n_drafted"] = result.n_drafted;
    out["n_accept"] = result.n_accept;
    out["draft_calls"] = result.log.calls();
    out["hit_calls"] = result.hit_calls;
    out["draft_steps"] = result.draft_steps;
    out["drafted_at"] = nb::cast(result.drafted_at);
    out["accepted_at"] = nb::cast(result.accepted_at);
    out["draft_ns_total"] = nb::cast(result.draft_ns_total);
    out["update_ns_total"] = nb::cast(result.update_ns_total);
    out["draft_update_ns_total"] = nb::cast(result.draft_update_ns_total);
    out["merge_ns_total"] = result.merge_ns_total;
    nb::dict clock;
    clock["name"] = result.clock_name;
    clock["ns_per_reading"] = result.clock_ns_per_reading;
    clock["readings"] = result.clock_readings;
    out["clock"] = clock;
    out["histogram"] = describe_histogram(result);
    return out;
}

}  // namespace ladder
