"""The figures of the end-to-end report, from a run's records alone.

Four ledgers side by side, because each of them alone misleads: (1) drafting latency, (2) the model's
verification and its real acceptance, (3) building, loading and memory of the cache, (4) the answer's time.
A draft is not an answer: how much faster drafts come says little about how much faster answers do.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from draft_ladder.base.errors import InputError
from draft_ladder.base.validation import load_versioned
from draft_ladder.bench.schema_1 import upgraded_style
from draft_ladder.e2e.cost import CostPoint
from draft_ladder.e2e.records import INDEX_NAME, NO_DRAFTING, SCHEMA, E2eRecord, read_record

ALL = "all"
MAX_PHASES_OFF = 0.02  # of the wall time
NS_PER_MS = 1e6


@dataclass(frozen=True)
class Row:
    """One workload (or all of them) with one variant. Times are per generated token unless named otherwise.

    `mean_accepted_length`: draft tokens accepted per draft call, without the token the model adds itself.
    Null where there is nothing to divide by: nothing drafted, or no drafter at all.
    """

    workload: str
    variant: str
    n_answers: int
    n_new: int
    tokens_per_s: float
    speed_against_none: float
    prefill_ms: float
    draft_us: float
    update_us: float
    verify_ms: float
    sample_us: float
    merge_us: float
    other_us: float
    drafting_share: float
    draft_us_per_drafted: float | None
    n_drafted: int
    acceptance: float | None
    replayed_acceptance: float | None
    replayed_us_per_drafted: float | None
    drafted_per_call: float | None
    mean_accepted_length: float | None
    hit_rate: float | None
    acceptance_by_position: tuple[float | None, ...]
    same_text: int
    phases_off_share: float


@dataclass(frozen=True)
class CacheRow:
    """What a variant's static cache costs before the first draft; medians over the replays."""

    variant: str
    file_mb: float
    convert_s: float | None
    load_s: float | None
    loaded_mb: float | None
    peak_mb: float | None
    memory_mb: float


@dataclass(frozen=True)
class DrafterRow:
    """A drafter for users along one workload's answers (or all); a call is one through Python."""

    workload: str
    drafter: str
    calls: int
    us_per_call: float | None
    drafted_per_call: float | None
    mean_accepted_length: float | None
    acceptance: float | None
    hit_rate: float | None


@dataclass(frozen=True)
class Difference:
    """An answer that differs from the one without drafting, from this token on."""

    workload: str
    prompt: int
    repeat: int
    variant: str
    index: int
    token: int
    expected: int
    logits_in_batch: tuple[float, float]
    logits_one_by_one: tuple[float, float]


@dataclass(frozen=True)
class Ledgers:
    """Everything the end-to-end report is made of."""

    index: dict[str, Any]
    rows: tuple[Row, ...]
    caches: tuple[CacheRow, ...]
    drafters: tuple[DrafterRow, ...]
    differences: tuple[Difference, ...]
    points: tuple[CostPoint, ...]
    static: dict[str, Any]

    def row(self, workload: str, variant: str) -> Row:
        """The row of one workload and variant."""
        return next(row for row in self.rows if (row.workload, row.variant) == (workload, variant))


# --- from records ------------------------------------------------------------------------------------------


def load_ledgers(folder: Path) -> Ledgers:
    """The ledgers of a results folder. InputError if it holds no finished end-to-end run."""
    path = folder / INDEX_NAME
    if not path.is_file():
        raise InputError(path, "is missing", "run `ladder e2e` to its end first")
    index = load_versioned(path, SCHEMA, "run `ladder e2e` again")
    try:
        return _from_index(folder, index)
    except (KeyError, TypeError, IndexError, ZeroDivisionError) as error:
        problem = f"does not go with its records ({type(error).__name__}: {error})"
        raise InputError(path, problem, "remove the folder and run `ladder e2e` again") from error


def _from_index(folder: Path, index: dict[str, Any]) -> Ledgers:
    path = folder / INDEX_NAME
    index["variants"] = {
        name: upgraded_style(index["variants"][name]) for name in index["config"]["variants"]
    }
    records = []
    for key in index["keys"]:
        file = folder / "runs" / f"{key}.json"
        if not file.is_file():
            raise InputError(file, "is missing", "run `ladder e2e` again")
        records.append(read_record(file))
    kinds: dict[str, list[E2eRecord]] = {}
    for record in records:
        kinds.setdefault(record.kind, []).append(record)
    generations, replays = kinds.get("generation", []), kinds.get("replay", [])
    if not generations or "cost" not in kinds:
        raise InputError(path, "names no answers or no cost curve", "run `ladder e2e` again")
    _check_answers(folder / "runs", generations)
    rows = tuple(_rows(index, generations, replays))
    points = tuple(CostPoint(**point) for point in kinds["cost"][-1].measured["points"])
    static = kinds["static"][-1].measured
    return Ledgers(
        index=index,
        rows=rows,
        caches=tuple(_cache_rows(index, replays, static)),
        drafters=tuple(_drafter_rows(index, kinds.get("drafters", []))),
        differences=tuple(_differences(generations)),
        points=points,
        static=static,
    )


def _check_answers(runs: Path, generations: Sequence[E2eRecord]) -> None:
    """The page says "the same text", "of the answer's time": InputError names a record where it is not so."""
    expected = {
        (record.spec["workload"], record.spec["prompt"], record.spec["repeat"]): record.measured["tokens"]
        for record in generations
        if record.spec["variant"] == NO_DRAFTING
    }
    for record in generations:
        measured, path = record.measured, runs / f"{record.key}.json"
        wall, phases = measured["outer_wall_ns"], sum(measured["phases_ns"].values())
        if measured["wall_ns"] <= 0 or abs(phases - wall) > MAX_PHASES_OFF * wall:
            problem = f"its phases sum to {phases} ns, its wall time is {wall}"
            raise InputError(path, problem, "run again with --force")
        answer = expected[record.spec["workload"], record.spec["prompt"], record.spec["repeat"]]
        same_to = (measured.get("divergence") or {}).get("index")
        if measured["tokens"][:same_to] != answer[:same_to]:
            raise InputError(path, "its answer is another than without drafting", "run again with --force")


def _rows(
    index: dict[str, Any], generations: Sequence[E2eRecord], replays: Sequence[E2eRecord]
) -> Iterable[Row]:
    workloads = [work["name"] for work in index["workloads"]]
    for workload in [*workloads, ALL]:
        chosen = [record for record in generations if workload in (record.spec["workload"], ALL)]
        replayed = [record for record in replays if workload in (record.spec["workload"], ALL)]
        none = [record.measured for record in chosen if record.spec["variant"] == NO_DRAFTING]
        for variant in [NO_DRAFTING, *index["variants"]]:
            answers = [record.measured for record in chosen if record.spec["variant"] == variant]
            again = [record.measured for record in replayed if record.spec["variant"] == variant]
            yield _row(workload, variant, answers, again, none)


def _sum(records: Iterable[dict[str, Any]], name: str) -> int:
    return sum(record[name] for record in records)


def _ratio(over: float, under: float) -> float | None:
    return over / under if under else None


def _row(
    workload: str,
    variant: str,
    answers: Sequence[dict[str, Any]],
    replays: Sequence[dict[str, Any]],
    none: Sequence[dict[str, Any]],
) -> Row:
    n_new, wall = _sum(answers, "n_new"), _sum(answers, "wall_ns")
    phase = {name: sum(a["phases_ns"][name] for a in answers) for name in answers[0]["phases_ns"]}
    drafted, calls = _sum(answers, "n_drafted"), _sum(answers, "draft_calls")
    drafting = phase["draft"] + phase["update"]
    replay_ns = sum(r["draft_ns_total"] + r["update_ns_total"] for r in replays)
    off = max(abs(sum(a["phases_ns"].values()) - a["outer_wall_ns"]) / a["outer_wall_ns"] for a in answers)
    return Row(
        workload=workload,
        variant=variant,
        n_answers=len(answers),
        n_new=n_new,
        tokens_per_s=n_new * 1e9 / wall,
        speed_against_none=(n_new / wall) / (_sum(none, "n_new") / _sum(none, "wall_ns")),
        prefill_ms=phase["prefill"] / n_new / NS_PER_MS,
        draft_us=phase["draft"] / n_new / 1e3,
        update_us=(phase["update"] + phase["prompt_update"]) / n_new / 1e3,
        verify_ms=phase["verify"] / n_new / NS_PER_MS,
        sample_us=phase["sample"] / n_new / 1e3,
        merge_us=phase["merge"] / n_new / 1e3,
        other_us=phase["other"] / n_new / 1e3,
        drafting_share=(drafting + phase["prompt_update"] + phase["merge"]) / wall,
        draft_us_per_drafted=None if not drafted else drafting / drafted / 1e3,
        n_drafted=drafted,
        acceptance=_ratio(_sum(answers, "n_accept"), drafted),
        replayed_acceptance=_ratio(_sum(replays, "n_accept"), _sum(replays, "n_drafted")),
        replayed_us_per_drafted=_ratio(replay_ns / 1e3, _sum(replays, "n_drafted")),
        drafted_per_call=_ratio(drafted, calls),
        mean_accepted_length=_ratio(_sum(answers, "n_accept"), calls),
        hit_rate=_ratio(_sum(answers, "hit_calls"), calls),
        acceptance_by_position=_by_position(answers),
        same_text=sum(1 for a in answers if a.get("divergence") is None),
        phases_off_share=off,
    )


def _by_position(answers: Sequence[dict[str, Any]]) -> tuple[float | None, ...]:
    """Of the drafted tokens at each place of a draft, the share that was accepted."""
    calls = [call for answer in answers for call in answer["calls"]]
    longest = max((drafted for drafted, _ in calls), default=0)
    return tuple(
        _ratio(
            sum(1 for _, accepted in calls if accepted > place),
            sum(1 for drafted, _ in calls if drafted > place),
        )
        for place in range(longest)
    )


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def _scaled(value: float | None, unit: float) -> float | None:
    return None if value is None else value / unit


def _cache_rows(
    index: dict[str, Any], replays: Sequence[E2eRecord], static: dict[str, Any]
) -> Iterable[CacheRow]:
    for name, variant in index["variants"].items():
        own = [record.measured for record in replays if record.spec["variant"] == name]
        static_format = variant["static_format"]
        yield CacheRow(
            variant=name,
            file_mb=static["file_bytes"][static_format] / 1e6,
            convert_s=_scaled(static["convert_ns"].get(static_format), 1e9),
            load_s=_scaled(_median(m["load_ns"] for m in own), 1e9),
            loaded_mb=_scaled(_median(m["loaded_rss_bytes"] for m in own), 1e6),
            peak_mb=_scaled(_median(m["peak_rss_bytes"] for m in own), 1e6),
            memory_mb=(_median(m["memory_bytes"] for m in own) or 0) / 1e6,
        )


DRAFTERS = {
    "ladder_static": "LadderDraft with the static cache",
    "ladder_bare": "LadderDraft without one",
    "ladder_eager": "LadderDraft, eager, with the static cache",
    "ladder_eager_bare": "LadderDraft, eager, without one",
    "llama_prompt_lookup": "LlamaPromptLookupDecoding",
}


def _drafter_rows(index: dict[str, Any], records: Sequence[E2eRecord]) -> Iterable[DrafterRow]:
    for workload in [*(work["name"] for work in index["workloads"]), ALL]:
        chosen = [record.measured for record in records if workload in (record.spec["workload"], ALL)]
        for name in DRAFTERS if chosen else ():
            sums = {key: sum(m[name][key] for m in chosen) for key in chosen[0][name]}
            calls = sums["calls"]
            yield DrafterRow(
                workload=workload,
                drafter=name,
                calls=calls,
                us_per_call=_ratio(sums["call_ns_total"] / 1e3, calls),
                drafted_per_call=_ratio(sums["drafted"], calls),
                mean_accepted_length=_ratio(sums["accepted"], calls),
                acceptance=_ratio(sums["accepted"], sums["drafted"]),
                hit_rate=_ratio(sums["hit_calls"], calls),
            )


def _differences(generations: Sequence[E2eRecord]) -> Iterable[Difference]:
    for record in generations:
        found = record.measured.get("divergence")
        if found is not None:
            yield Difference(
                workload=record.spec["workload"],
                prompt=record.spec["prompt"],
                repeat=record.spec["repeat"],
                variant=record.spec["variant"],
                index=found["index"],
                token=found["token"],
                expected=found["expected"],
                logits_in_batch=tuple(found["logits_in_batch"]),
                logits_one_by_one=tuple(found["logits_one_by_one"]),
            )
