"""What the figures mean: every metric by name, unit and how it follows from what a worker measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

NS_PER_US = 1e3
NS_PER_S = 1e9
BYTES_PER_MB = 1e6

# What a variant costs: lower is better in all of these. Runs are compared by them, other tools get them.
COSTS = (
    "draft_latency_us",
    "draft_us",
    "update_us",
    "merge_us",
    "load_time_s",
    "peak_rss_mb",
    "static_mb",
)

POSITION_PREFIX = "acceptance_at_"

Measured = dict[str, Any]


@dataclass(frozen=True)
class Metric:
    """A figure derived from one record. `timing` is the mode it belongs to (None: any)."""

    name: str
    unit: str
    meaning: str
    timing: str | None
    compute: Callable[[Measured], float | int | None]
    absent: str  # why it is missing when it is


def _per_drafted(measured: Measured, *names: str) -> float | None:
    drafted = measured.get("n_drafted")
    parts = [measured.get(name) for name in names]
    if not drafted or any(part is None for part in parts):
        return None
    return sum(float(part) for part in parts if part is not None) / int(drafted) / NS_PER_US


def _net_latency(measured: Measured) -> float | None:
    clock = measured.get("clock") or {}
    gross = _per_drafted(measured, "draft_ns_total", "update_ns_total")
    if gross is None or clock.get("readings") is None or clock.get("ns_per_reading") is None:
        return None
    cost_us = float(clock["readings"]) * float(clock["ns_per_reading"]) / NS_PER_US
    return gross - cost_us / int(measured["n_drafted"])


def _ratio(over: str, under: str, scale: float = 1.0) -> Callable[[Measured], float | None]:
    def compute(measured: Measured) -> float | None:
        top, bottom = measured.get(over), measured.get(under)
        return None if top is None or not bottom else float(top) / float(bottom) * scale

    return compute


def _scaled(name: str, unit: float) -> Callable[[Measured], float | None]:
    def compute(measured: Measured) -> float | None:
        value = measured.get(name)
        return None if value is None else float(value) / unit

    return compute


def _count(name: str) -> Callable[[Measured], int | None]:
    return lambda measured: measured.get(name)


def _us_per_call(measured: Measured) -> float | None:
    calls = measured.get("draft_calls")
    draft, update = measured.get("draft_ns_total"), measured.get("update_ns_total")
    return None if not calls or draft is None or update is None else float(draft + update) / calls / NS_PER_US


def _floor_us(kind: str) -> Callable[[Measured], float | None]:
    """One random read a draft step, per drafted token."""

    def compute(measured: Measured) -> float | None:
        floor, steps, drafted = (measured.get(name) for name in ("memory_floor", "draft_steps", "n_drafted"))
        if not floor or not steps or not drafted:
            return None
        return float(floor[kind]) * int(steps) / int(drafted) / NS_PER_US

    return compute


def _above_floor(measured: Measured) -> float | None:
    floor, latency = _floor_us("dependent_ns")(measured), _net_latency(measured)
    return None if not floor or latency is None else latency / floor


def _load_and_replay_s(measured: Measured) -> float | None:
    parts = [measured.get(name) for name in ("draft_update_ns_total", "merge_ns_total")]
    if any(part is None for part in parts):
        return None
    return sum(float(part or 0) for part in [*parts, measured.get("load_ns")]) / NS_PER_S


def histogram_quantile(histogram: list[list[int]] | None, share: float) -> float | None:
    """Upper bound (µs) of the bucket that holds the `share` quantile; None if empty.

    `histogram`: [upper_ns, count] pairs in rising order.
    """
    total = sum(count for _, count in histogram or [])
    seen = 0
    for upper_ns, count in histogram or []:
        seen += count
        if total and seen >= share * total:
            return upper_ns / NS_PER_US
    return None


def _quantile(share: float) -> Callable[[Measured], float | None]:
    return lambda measured: histogram_quantile(measured.get("histogram"), share)


_NOTHING_DRAFTED = "nothing was drafted"
_NO_STATIC = "no static cache"
_NOT_REPORTED = "the system does not report it"
METRICS: tuple[Metric, ...] = (
    Metric(
        "draft_latency_us",
        "us",
        "time in draft and update per drafted token, gross",
        "call",
        lambda measured: _per_drafted(measured, "draft_ns_total", "update_ns_total"),
        _NOTHING_DRAFTED,
    ),
    Metric(
        "draft_latency_net_us",
        "us",
        "the same less the clock's own cost (readings x measured cost of one)",
        "call",
        _net_latency,
        _NOTHING_DRAFTED,
    ),
    Metric(
        "draft_us",
        "us",
        "time in draft per drafted token",
        "call",
        lambda measured: _per_drafted(measured, "draft_ns_total"),
        _NOTHING_DRAFTED,
    ),
    Metric(
        "update_us",
        "us",
        "time in update per drafted token",
        "call",
        lambda measured: _per_drafted(measured, "update_ns_total"),
        _NOTHING_DRAFTED,
    ),
    Metric(
        "merge_us",
        "us",
        "time in the merges after chunks, per drafted token (not part of the latency)",
        "call",
        lambda measured: _per_drafted(measured, "merge_ns_total"),
        _NOTHING_DRAFTED,
    ),
    Metric(
        "us_per_call",
        "us",
        "time in draft and update per draft call",
        "call",
        _us_per_call,
        "no draft call",
    ),
    Metric(
        "draft_latency_chunk_us",
        "us",
        "draft latency with one pair of clock readings per chunk",
        "chunk",
        lambda measured: _per_drafted(measured, "draft_update_ns_total"),
        _NOTHING_DRAFTED,
    ),
    Metric(
        "draft_call_p50_us",
        "us",
        "half of the draft calls took at most this",
        "histogram",
        _quantile(0.5),
        "no draft call",
    ),
    Metric(
        "draft_call_p90_us",
        "us",
        "90 % of the draft calls took at most this",
        "histogram",
        _quantile(0.9),
        "no draft call",
    ),
    Metric(
        "draft_call_p99_us",
        "us",
        "99 % of the draft calls took at most this",
        "histogram",
        _quantile(0.99),
        "no draft call",
    ),
    Metric(
        "draft_call_p999_us",
        "us",
        "99.9 % of the draft calls took at most this",
        "histogram",
        _quantile(0.999),
        "no draft call",
    ),
    Metric(
        "draft_call_max_us",
        "us",
        "the slowest draft call took at most this",
        "histogram",
        _quantile(1.0),
        "no draft call",
    ),
    Metric(
        "load_time_s",
        "s",
        "opening the static cache file to ready for the first draft",
        None,
        _scaled("load_ns", NS_PER_S),
        _NO_STATIC,
    ),
    Metric(
        "load_verify_s",
        "s",
        "verifying the file's checksum (not part of the load time)",
        None,
        _scaled("load_verify_ns", NS_PER_S),
        "the format has no checksum",
    ),
    Metric(
        "peak_rss_mb",
        "MB",
        "most resident memory from the loaded tokens on",
        None,
        _scaled("peak_rss_bytes", BYTES_PER_MB),
        _NOT_REPORTED,
    ),
    Metric(
        "loaded_rss_mb",
        "MB",
        "resident memory after the load",
        None,
        _scaled("loaded_rss_bytes", BYTES_PER_MB),
        _NOT_REPORTED,
    ),
    Metric(
        "baseline_rss_mb",
        "MB",
        "resident memory before the load",
        None,
        _scaled("baseline_rss_bytes", BYTES_PER_MB),
        _NOT_REPORTED,
    ),
    Metric(
        "static_mb",
        "MB",
        "the static cache by the variant's own count",
        None,
        _scaled("static_bytes", BYTES_PER_MB),
        _NOT_REPORTED,
    ),
    Metric(
        "static_file_mb",
        "MB",
        "size of the static cache file",
        None,
        _scaled("static_file_bytes", BYTES_PER_MB),
        _NOT_REPORTED,
    ),
    Metric(
        "final_rss_anon_mb",
        "MB",
        "anonymous resident memory after the replay",
        None,
        _scaled("final_rss_anon_bytes", BYTES_PER_MB),
        _NOT_REPORTED,
    ),
    Metric(
        "final_rss_file_mb",
        "MB",
        "file-backed resident memory after the replay: what was touched of a mapped file",
        None,
        _scaled("final_rss_file_bytes", BYTES_PER_MB),
        _NOT_REPORTED,
    ),
    Metric(
        "load_and_replay_s",
        "s",
        "load, drafts, updates and merges of the whole replay together",
        "call",
        _load_and_replay_s,
        _NOT_REPORTED,
    ),
    Metric(
        "floor_dependent_us",
        "us",
        "one random 64-byte read a draft step from a table of the static file's size, each address depending "
        "on the read before, per drafted token",
        "call",
        _floor_us("dependent_ns"),
        _NO_STATIC,
    ),
    Metric(
        "floor_independent_us",
        "us",
        "the same with addresses known beforehand",
        "call",
        _floor_us("independent_ns"),
        _NO_STATIC,
    ),
    Metric(
        "times_above_floor",
        "ratio",
        "net draft latency over the variant's own dependent floor: a smaller static file has a lower one",
        "call",
        _above_floor,
        _NO_STATIC,
    ),
    Metric(
        "acceptance",
        "ratio",
        "drafted tokens that agree with the replayed text",
        None,
        _ratio("n_accept", "n_drafted"),
        _NOTHING_DRAFTED,
    ),
    Metric(
        "hit_rate",
        "ratio",
        "draft calls that drafted at least one token",
        None,
        _ratio("hit_calls", "draft_calls"),
        "no draft call",
    ),
    Metric(
        "drafted_per_call",
        "tokens",
        "drafted tokens per draft call",
        None,
        _ratio("n_drafted", "draft_calls"),
        "no draft call",
    ),
    Metric("n_drafted", "tokens", "drafted tokens", None, _count("n_drafted"), _NOT_REPORTED),
    Metric(
        "n_accept",
        "tokens",
        "drafted tokens that agree with the replayed text",
        None,
        _count("n_accept"),
        _NOT_REPORTED,
    ),
)


def metric_values(measured: Measured, timing: str) -> Iterator[tuple[Metric, float | int | None]]:
    """Every metric that a run of this timing mode has, with its value."""
    for metric in METRICS:
        if metric.timing in (None, timing):
            yield metric, metric.compute(measured)
    for metric in position_metrics(measured):
        yield metric, metric.compute(measured)


def position_metrics(measured: Measured) -> Iterator[Metric]:
    """Acceptance by place in the draft: `acceptance_at_1` to as many as a draft has tokens."""

    def share(index: int) -> Callable[[Measured], float | None]:
        def compute(found: Measured) -> float | None:
            drafted = found["drafted_at"][index]
            return float(found["accepted_at"][index]) / drafted if drafted else None

        return compute

    for index in range(len(measured.get("drafted_at") or [])):
        meaning = f"of the tokens drafted at place {index + 1} of a draft, those that agree with the text"
        yield Metric(
            f"{POSITION_PREFIX}{index + 1}", "ratio", meaning, None, share(index), "nothing was drafted there"
        )
