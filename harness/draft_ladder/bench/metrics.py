"""What the figures mean: every metric, how it follows from what a worker measured, and where it is shown.

Tables, charts, `compare`, `ablate`, `export` and `claims` follow from METRICS: a metric is one entry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

# How a run is timed, as records call it: clock readings around a call or a chunk, or calls kept apart.
PER_CALL, PER_CHUNK, HISTOGRAM = "call", "chunk", "histogram"
NS_PER_US = 1e3
NS_PER_S = 1e9
BYTES_PER_MB = 1e6
POSITION_PREFIX = "acceptance_at_"

Measured = dict[str, Any]
Place = Literal["compare", "ablate", "export", "claims"]
_NOTHING_DRAFTED = "nothing was drafted"
NOTHING_ASKED = "n_draft is 0: no draft has a token; ask for at least 1"
_SUFFIXES = {"us": " µs", "s": " s", "MB": " MB"}


@dataclass(frozen=True)
class Column:
    """A metric's place in the tables of `ladder stats`; `spread` puts a column of its range beside it."""

    table: Literal["times", "drafts", "tails"]
    heading: str
    spread: bool = False


@dataclass(frozen=True)
class Picture:
    """How a metric is charted: the file's name, title and axis; `caveat` follows every title."""

    name: str
    title: str
    axis: str
    caveat: str = ""
    log: bool = True


@dataclass(frozen=True)
class Metric:
    """A figure derived from one record.

    `timing` is the mode it belongs to (None: any), `absent` says why it is missing when it is. `words` name
    it in sentences; `digits` and `suffix` are how figures are written; `shown` are the verbs that take it.
    """

    name: str
    unit: str
    meaning: str
    timing: str | None
    compute: Callable[[Measured], float | int | None]
    absent: str
    better: Literal["lower", "higher"] | None = None
    words: str = ""
    digits: int = 4
    sign: str | None = None
    column: Column | None = None
    picture: Picture | None = None
    shown: tuple[Place, ...] = ()

    @property
    def stem(self) -> str:
        """Its name without the unit, as claims and other tools call it."""
        return self.name.removesuffix(f"_{self.unit.lower()}")

    @property
    def suffix(self) -> str:
        """What is written behind a figure."""
        return _SUFFIXES.get(self.unit, "") if self.sign is None else self.sign

    @property
    def own_timing(self) -> str:
        """The mode whose runs give its figures."""
        return self.timing or PER_CALL

    def why_absent(self, n_draft: int) -> str:
        """Why there is no figure: with n_draft 0, where that is asked of what was drafted."""
        return NOTHING_ASKED if n_draft == 0 and self.absent.startswith(_NOTHING_DRAFTED) else self.absent

    def gain(self, before: float, after: float) -> float:
        """How many times better `after` is: above 1 is better, below 1 is worse."""
        return after / before if self.better == "higher" else before / after


def _us_per(count: str, *names: str) -> Callable[[Measured], float | None]:
    def compute(measured: Measured) -> float | None:
        parts = [measured.get(name) for name in names]
        if not measured.get(count) or None in parts:
            return None
        return sum(float(part or 0) for part in parts) / int(measured[count]) / NS_PER_US

    return compute


_latency = _us_per("n_drafted", "draft_ns_total", "update_ns_total")


def _net_latency(measured: Measured) -> float | None:
    clock = measured.get("clock") or {}
    gross = _latency(measured)
    if gross is None or clock.get("readings") is None or clock.get("ns_per_reading") is None:
        return None
    cost_us = float(clock["readings"]) * float(clock["ns_per_reading"]) / NS_PER_US
    return gross - cost_us / int(measured["n_drafted"])


def ratio(over: str, under: str) -> Callable[[Measured], float | None]:
    """One field over another; None where one of them is missing or the lower one is 0."""

    def compute(measured: Measured) -> float | None:
        top, bottom = measured.get(over), measured.get(under)
        return None if top is None or not bottom else float(top) / float(bottom)

    return compute


def _scaled(name: str, unit: float) -> Callable[[Measured], float | None]:
    def compute(measured: Measured) -> float | None:
        value = measured.get(name)
        return None if value is None else float(value) / unit

    return compute


def _count(name: str) -> Callable[[Measured], int | None]:
    return lambda measured: measured.get(name)


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


def quantile(buckets: Sequence[Sequence[float]], share: float) -> float | None:
    """Upper bound of the bucket that holds the `share` quantile, in the buckets' unit; None if empty.

    `buckets`: [upper, count] pairs in rising order.
    """
    total = sum(count for _, count in buckets)
    seen = 0.0
    for upper, count in buckets:
        seen += count
        if total and seen >= share * total:
            return upper
    return None


def histogram_quantile(histogram: Sequence[Sequence[float]] | None, share: float) -> float | None:
    """The `share` quantile in µs of a histogram in ns; None if it is empty or missing."""
    found = quantile(histogram or [], share)
    return None if found is None else found / NS_PER_US


_NO_CALL = "no draft call"
_NO_STATIC = "no static cache"
_NOT_REPORTED = "the system does not report it"
_EVERYWHERE: tuple[Place, ...] = ("compare", "ablate", "export", "claims")
_COST: tuple[Place, ...] = ("compare", "export")


def _per_token(name: str, meaning: str, *fields: str, timing: str = PER_CALL, **more: Any) -> Metric:
    compute = _us_per("n_drafted", *fields)
    return Metric(name, "us", meaning, timing, compute, _NOTHING_DRAFTED, better="lower", **more)


def _tail(name: str, share: float, heading: str, meaning: str, **more: Any) -> Metric:
    def compute(measured: Measured) -> float | None:
        return histogram_quantile(measured.get("histogram"), share)

    about, column = f"{meaning} took at most this", Column("tails", heading)
    return Metric(name, "us", about, HISTOGRAM, compute, _NO_CALL, "lower", column=column, **more)


def _megabytes(name: str, meaning: str, **more: Any) -> Metric:
    compute = _scaled(f"{name.removesuffix('_mb')}_bytes", BYTES_PER_MB)
    return Metric(name, "MB", meaning, None, compute, _NOT_REPORTED, better="lower", **more)


def _share(name: str, unit: str, meaning: str, over: str, under: str, heading: str, absent: str) -> Metric:
    compute, column = ratio(over, under), Column("drafts", heading)
    return Metric(name, unit, meaning, None, compute, absent, better="higher", column=column)


# fmt: off
METRICS: tuple[Metric, ...] = (
    _per_token("draft_latency_us", "time in draft and update per drafted token, gross",
               "draft_ns_total", "update_ns_total",
               words="draft latency", column=Column("times", "latency", spread=True), shown=_EVERYWHERE,
               picture=Picture("draft_latency", "Draft latency per drafted token",
                               "draft + update, µs per drafted token", "not answer time")),
    Metric("draft_latency_net_us", "us",
           "the same less the clock's own cost (readings x measured cost of one)",
           PER_CALL, _net_latency, _NOTHING_DRAFTED, better="lower"),
    _per_token("draft_us", "time in draft per drafted token", "draft_ns_total",
               column=Column("times", "draft"), shown=_COST),
    _per_token("update_us", "time in update per drafted token", "update_ns_total",
               column=Column("times", "update"), shown=_COST),
    _per_token("merge_us", "time in the merges after chunks, per drafted token (not part of the latency)",
               "merge_ns_total", column=Column("times", "merge"), shown=_COST),
    Metric("us_per_call", "us", "time in draft and update per draft call", PER_CALL,
           _us_per("draft_calls", "draft_ns_total", "update_ns_total"), _NO_CALL,
           better="lower", column=Column("times", "µs/call")),
    _per_token("draft_latency_chunk_us", "draft latency with one pair of clock readings per chunk",
               "draft_update_ns_total", timing=PER_CHUNK),
    Metric("load_time_s", "s", "opening the static cache file to ready for the first draft",
           None, _scaled("load_ns", NS_PER_S), _NO_STATIC, better="lower",
           words="load time", column=Column("times", "load s"), shown=_EVERYWHERE,
           picture=Picture("load_time", "Loading the static cache", "load time, seconds")),
    Metric("load_verify_s", "s", "verifying the file's checksum (not part of the load time)",
           None, _scaled("load_verify_ns", NS_PER_S), "the format has no checksum", better="lower"),
    _megabytes("peak_rss_mb", "largest resident memory from the loaded tokens on",
               words="peak memory", column=Column("times", "peak MB"), shown=_EVERYWHERE,
               picture=Picture("peak_rss", "Peak memory of the process", "peak RSS, MB", log=False)),
    _megabytes("loaded_rss_mb", "resident memory after the load"),
    _megabytes("baseline_rss_mb", "resident memory before the load"),
    _megabytes("static_mb", "the static cache by the variant's own count", shown=_COST),
    _megabytes("static_file_mb", "size of the static cache file"),
    _megabytes("final_rss_anon_mb", "anonymous resident memory after the replay"),
    _megabytes("final_rss_file_mb",
               "file-backed resident memory after the replay: what was touched of a mapped file"),
    _tail("draft_call_p50_us", 0.5, "p50", "half of the draft calls"),
    _tail("draft_call_p90_us", 0.9, "p90", "90 % of the draft calls"),
    _tail("draft_call_p99_us", 0.99, "p99", "99 % of the draft calls"),
    _tail("draft_call_p999_us", 0.999, "p99.9", "99.9 % of the draft calls",
          words="99.9th percentile of a draft call", shown=("ablate",)),
    _tail("draft_call_max_us", 1.0, "max", "the slowest draft call",
          words="slowest draft call", shown=("ablate",)),
    Metric("load_and_replay_s", "s", "load, drafts, updates and merges of the whole replay together",
           PER_CALL, _load_and_replay_s, _NOT_REPORTED, better="lower"),
    Metric("floor_dependent_us", "us",
           "one random 64-byte read a draft step from a table of the static file's size, each "
           "address depending on the read before, per drafted token",
           PER_CALL, _floor_us("dependent_ns"), _NO_STATIC),
    Metric("floor_independent_us", "us", "the same with addresses known beforehand",
           PER_CALL, _floor_us("independent_ns"), _NO_STATIC),
    Metric("times_above_floor", "ratio",
           "net draft latency over the variant's own dependent floor: a smaller static file has a lower one",
           PER_CALL, _above_floor, _NO_STATIC, better="lower", sign="×",
           picture=Picture("above_floor",
                           "Draft latency over one random memory read a draft step",
                           "times the floor of its own file's size", "not answer time")),
    Metric("n_drafted", "tokens", "drafted tokens", None, _count("n_drafted"), _NOT_REPORTED,
           column=Column("drafts", "drafted")),
    Metric("n_accept", "tokens", "drafted tokens that agree with the replayed text", None, _count("n_accept"),
           _NOT_REPORTED, better="higher", column=Column("drafts", "accepted")),
    _share("drafted_per_call", "tokens", "drafted tokens per draft call", "n_drafted", "draft_calls",
           "drafted/call", _NO_CALL),
    _share("hit_rate", "ratio", "draft calls that drafted at least one token", "hit_calls", "draft_calls",
           "hit rate", _NO_CALL),
    _share("acceptance", "ratio", "drafted tokens that agree with the replayed text", "n_accept", "n_drafted",
           "acceptance", _NOTHING_DRAFTED),
)
# fmt: on
BY_NAME = {metric.name: metric for metric in METRICS}


def shown_in(place: Place) -> dict[str, Metric]:
    """The metrics that a verb takes, by name."""
    return {metric.name: metric for metric in METRICS if place in metric.shown}


def own_timing(name: str) -> str:
    """The mode whose runs give the figures of a metric; acceptance by place has that of every count."""
    return BY_NAME[name].own_timing if name in BY_NAME else PER_CALL


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
