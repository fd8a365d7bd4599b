"""What is reported of a request replay: one list, from which table, CSV and charts are made."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from draft_ladder.bench.metrics import Measured, Metric, histogram_quantile, ratio
from draft_ladder.peers.records import RequestRecord


def _share_empty(measured: Measured) -> float | None:
    calls = measured["draft_calls"]
    return None if not calls else 1 - measured["hit_calls"] / calls


def _quantile_us(phase: str, share: float) -> Callable[[Measured], float | int | None]:
    return lambda measured: histogram_quantile(measured["histograms"][phase], share)


def _metric(
    name: str,
    unit: str,
    words: str,
    meaning: str,
    compute: Callable[[Measured], float | int | None],
    better: Literal["lower", "higher"] | None = None,
    digits: int = 3,
) -> Metric:
    return Metric(name, unit, meaning, None, compute, "no call was made", better, words, digits)


def _times(phase: str, what: str) -> list[Metric]:
    return [
        _metric(
            f"{phase}_{suffix}_us",
            "us",
            f"{phase} {suffix}, µs",
            f"{what}: {words}",
            _quantile_us(phase, share),
            "lower",
        )
        for suffix, words, share in (("median", "median", 0.5), ("p99", "99th percentile", 0.99))
    ]


METRICS: tuple[Metric, ...] = (
    _metric(
        "tokens_per_call",
        "",
        "tokens per call",
        "mean accepted length: response tokens after the first, over calls; the verified token is included",
        ratio("n_response_tokens", "draft_calls"),
        "higher",
        4,
    ),
    _metric(
        "tokens_per_call_of_requests",
        "",
        "mean over requests",
        "tokens per call of each request, averaged over the requests that made a call",
        ratio("tokens_per_call_sum_of_requests", "n_judged_requests"),
        "higher",
        4,
    ),
    _metric(
        "drafted_per_call",
        "",
        "drafted per call",
        "tokens drafted, fillers included, over calls; calls that draft nothing count",
        ratio("n_drafted", "draft_calls"),
        None,
        4,
    ),
    _metric(
        "acceptance",
        "",
        "acceptance",
        "tokens accepted over tokens drafted",
        ratio("n_accept", "n_drafted"),
        "higher",
    ),
    _metric(
        "hit_rate",
        "",
        "hit rate",
        "calls that drafted something, over calls",
        ratio("hit_calls", "draft_calls"),
    ),
    _metric("empty_share", "", "drafted nothing", "calls that drafted nothing, over calls", _share_empty),
    *_times("draft", "one draft call"),
    *_times("update", "learning what one call yielded"),
    *_times("commit", "the end of a request"),
    _metric(
        "learn_ns",
        "ns",
        "prompt, ns a token",
        "learning the prompt, per token that was given",
        ratio("learn_ns_total", "n_learned_tokens"),
        "lower",
    ),
    _metric(
        "history_bytes",
        "bytes",
        "bytes a token",
        "held at the end, per token learned since the drafter last forgot",
        ratio("memory_bytes", "history_tokens"),
        "lower",
    ),
)


@dataclass(frozen=True)
class Cell:
    """The runs of one drafter at one setting on one workload, and the median of each figure."""

    record: RequestRecord  # one of them, for its settings
    runs: int
    values: Mapping[str, float | None]


def cells(records: Iterable[RequestRecord]) -> list[Cell]:
    """Every cell that has a finished run, in the records' order of workloads and drafters."""
    groups: dict[tuple[str, int, str, str, tuple[tuple[str, str], ...]], list[RequestRecord]] = {}
    for record in records:
        if record.status == "ok":
            spec = record.spec
            axes = tuple(sorted(spec.axes.items()))
            group = (spec.workload, spec.n_draft, spec.history, spec.variant, axes)
            groups.setdefault(group, []).append(record)
    found = []
    for key in sorted(groups):
        members = groups[key]
        values = {metric.name: _median(metric, members) for metric in METRICS}
        found.append(Cell(members[0], len(members), values))
    return found


def _median(metric: Metric, members: Sequence[RequestRecord]) -> float | None:
    values = [metric.compute(member.measured or {}) for member in members]
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None
