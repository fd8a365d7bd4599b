"""The ledger page of an end-to-end run, from its records alone: a table, a figure, and one sentence.

Four ledgers side by side, because each of them alone misleads: (1) drafting latency, (2) the model's
verification and its real acceptance, (3) building, loading and memory of the cache, (4) the answer's time.
A draft is not an answer: how much faster drafts come says little about how much faster answers do.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from harness.e2e.cost import CostCurve, CostPoint
from harness.e2e.records import INDEX_NAME, NO_DRAFTING, SCHEMA, E2eRecord, read_record
from harness.errors import InputError
from harness.manifests import write_atomic
from harness.measure.records import load_json

ALL = "all"
PHASES_OFF_MOST = 0.02  # of the wall time
NS_PER_MS = 1e6


@dataclass(frozen=True)
class Row:
    """One workload (or all of them) with one variant. Times are per generated token unless named otherwise.

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
    accepted_per_call: float | None
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
    accepted_per_call: float | None
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
    """Everything the page says."""

    index: dict[str, Any]
    rows: tuple[Row, ...]
    caches: tuple[CacheRow, ...]
    drafters: tuple[DrafterRow, ...]
    differences: tuple[Difference, ...]
    points: tuple[CostPoint, ...]
    static: dict[str, Any]
    sentences: tuple[str, ...]

    def row(self, workload: str, variant: str) -> Row:
        """The row of one workload and variant."""
        return next(row for row in self.rows if (row.workload, row.variant) == (workload, variant))

    def report(self) -> dict[str, Any]:
        """For JSON."""
        content = asdict(self)
        content.pop("index")
        return {"model": self.index["model"], **content}

    def text(self) -> str:
        """The page as Markdown."""
        return "\n".join(_page(self)) + "\n"


# --- from records ------------------------------------------------------------------------------------------


def load_ledgers(folder: Path) -> Ledgers:
    """The ledgers of a results folder. InputError if it holds no finished end-to-end run."""
    path = folder / INDEX_NAME
    if not path.is_file():
        raise InputError(path, "is missing", "run `ladder e2e` to its end first")
    index = load_json(path)
    if index.get("schema") != SCHEMA:
        raise InputError(f"{path}: schema", f"{index.get('schema')!r} is not {SCHEMA}", "update Draft Ladder")
    try:
        return _from_index(folder, index)
    except (KeyError, TypeError, IndexError, ZeroDivisionError) as error:
        problem = f"does not go with its records ({type(error).__name__}: {error})"
        raise InputError(path, problem, "remove the folder and run `ladder e2e` again") from error


def _from_index(folder: Path, index: dict[str, Any]) -> Ledgers:
    path = folder / INDEX_NAME
    index["variants"] = {name: index["variants"][name] for name in index["config"]["variants"]}
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
        sentences=tuple(_sentences(index, rows, points)),
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
        if measured["wall_ns"] <= 0 or abs(phases - wall) > PHASES_OFF_MOST * wall:
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
        accepted_per_call=_ratio(_sum(answers, "n_accept"), calls),
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
    known = sorted(value for value in values if value is not None)
    if not known:
        return None
    middle = len(known) // 2
    return known[middle] if len(known) % 2 else (known[middle - 1] + known[middle]) / 2


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
                accepted_per_call=_ratio(sums["accepted"], calls),
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


# --- words -------------------------------------------------------------------------------------------------


def _sentences(index: dict[str, Any], rows: Sequence[Row], points: Sequence[CostPoint]) -> Iterable[str]:
    """What the figures come to. Nothing in these sentences is typed by hand."""
    every = {row.variant: row for row in rows if row.workload == ALL}
    variants = index["variants"]
    rungs = sorted((v["rung"], name) for name, v in variants.items() if v.get("rung") is not None)
    if len(rungs) > 1:
        (first_rung, first), (last_rung, last) = rungs[0], rungs[-1]
        yield _comparison(
            f"Rung {first_rung} ({variants[first]['label']}) to rung {last_rung} ({variants[last]['label']})",
            every[first],
            every[last],
        )
        for name, variant in variants.items():
            if variant["kind"] == "beyond":
                yield _comparison(
                    f"Rung {first_rung} to what lies beyond the ladder ({variant['label']})",
                    every[first],
                    every[name],
                )
    n_draft = index["config"]["n_draft"]
    drafting = [row for row in rows if row.variant != NO_DRAFTING and row.workload != ALL]
    best = max(drafting, key=lambda row: row.speed_against_none)
    worst = min(drafting, key=lambda row: row.speed_against_none)
    if not any(row.n_drafted for row in drafting):
        yield "Nothing was drafted: what differs from answers without drafting is noise."
    yield (
        f"Against no drafting, answers come between {worst.speed_against_none:.2f} times "
        f"({worst.workload}, {worst.variant}) and {best.speed_against_none:.2f} times "
        f"({best.workload}, {best.variant}) as fast, with drafts of up to {n_draft} tokens."
    )
    curve = CostCurve(points)
    even = curve.break_even(n_draft)
    verdict = (
        f"{even:.2f} of the {n_draft} tokens have to be accepted for a full draft to pay"
        if even <= n_draft
        else "not even a draft that is accepted whole pays"
    )
    yield (
        f"On this machine and model a decode of {n_draft + 1} tokens costs "
        f"{curve.cost_ns(n_draft + 1) / curve.cost_ns(1):.2f} times that of one: {verdict}."
    )


def _comparison(what: str, before: Row, after: Row) -> str:
    if not before.draft_us_per_drafted or not after.draft_us_per_drafted:
        return f"{what}: nothing was drafted, so nothing became faster."
    faster = before.draft_us_per_drafted / after.draft_us_per_drafted
    measured = after.tokens_per_s / before.tokens_per_s
    return (
        f"{what} makes the drafting inside these answers {faster:.1f} times faster and the answers "
        f"{answers_faster(before, after):.4f} times as fast "
        f"(the model's own time held equal; measured with its noise, {measured:.2f} times): "
        f"drafting was {before.drafting_share:.3%} of the answer's time and is {after.drafting_share:.3%}. "
        "A draft is not an answer."
    )


def answers_faster(before: Row, after: Row) -> float:
    """How many times as fast answers come, where nothing but drafting differs between two variants.

    The model's time for the same work varies by more than all of drafting takes; so both are given the mean
    of the two.
    """
    drafting = [row.drafting_share / row.tokens_per_s for row in (before, after)]
    rest = sum((1 - row.drafting_share) / row.tokens_per_s for row in (before, after)) / 2
    return (rest + drafting[0]) / (rest + drafting[1])


def _figure(value: float | None, digits: int = 2) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def _digits(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.1%}"


def _table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> Iterable[str]:
    yield "| " + " | ".join(head) + " |"
    yield "| " + " | ".join("---" for _ in head) + " |"
    for line in lines:
        yield "| " + " | ".join(line) + " |"


def _page(ledgers: Ledgers) -> Iterable[str]:
    index = ledgers.index
    yield f"# Four ledgers: {index['model']['name']} ({index['model']['file']})"
    yield ""
    for sentence in ledgers.sentences:
        yield f"- {sentence}"
    yield ""
    yield "## Drafting, verification and the answer, per generated token"
    yield ""
    yield from _answer_table(ledgers)
    yield ""
    yield (
        "Drafts of one tie class are identical, so its variants accept the same tokens: what differs in a "
        "workload between them is drafting time and noise. The answer's time includes the prompt's, and "
        "`update` counts the prompt too. Between two drafts of an answer the model runs through the "
        "processor's caches, which a replay does not have to suffer."
    )
    yield ""
    yield "## The cache"
    yield ""
    yield from _cache_table(ledgers)
    yield ""
    if ledgers.drafters:
        yield "## The drafter for users, along the same answers, through Python"
        yield ""
        yield from _drafter_table(ledgers)
        yield ""
    yield "## The text"
    yield ""
    yield from _text_lines(ledgers)


def _answer_table(ledgers: Ledgers) -> Iterable[str]:
    head = (
        "workload", "variant", "tokens/s", "against none", "prefill ms", "draft µs", "update µs",
        "verify ms", "sample µs", "merge µs", "other µs", "drafting's share", "drafted/call",
        "accepted/call", "acceptance", "by position", "replayed acceptance", "µs/drafted",
        "replayed µs/drafted",
    )  # fmt: skip
    lines = []
    for row in ledgers.rows:
        positions = " ".join(_share(value) for value in row.acceptance_by_position) or "–"
        lines.append(
            (
                row.workload, row.variant, _figure(row.tokens_per_s, 1), _figure(row.speed_against_none, 3),
                _figure(row.prefill_ms, 1), _figure(row.draft_us), _figure(row.update_us),
                _figure(row.verify_ms, 1), _figure(row.sample_us, 1), _figure(row.merge_us),
                _figure(row.other_us, 1), f"{row.drafting_share:.3%}", _figure(row.drafted_per_call),
                _figure(row.accepted_per_call), _share(row.acceptance), positions,
                _share(row.replayed_acceptance), _figure(row.draft_us_per_drafted, 3),
                _figure(row.replayed_us_per_drafted, 3),
            )
        )  # fmt: skip
    yield from _table(head, lines)


def _cache_table(ledgers: Ledgers) -> Iterable[str]:
    corpus = ledgers.static["corpus"]
    size = f"{corpus['bytes'] / 1e6:.1f} MB of " if corpus.get("bytes") else ""
    total = corpus.get("facts", {}).get("total_ns")
    built = f"; counted and written in {total / 1e9:.1f} s" if total else ""
    yield f"Built from {size}{corpus['label']}{built}."
    yield ""
    head = ("variant", "file MB", "converted in s", "load s", "RSS after load MB", "peak RSS MB", "caches MB")
    yield from _table(
        head,
        [
            (
                row.variant, _figure(row.file_mb, 1), _figure(row.convert_s), _digits(row.load_s),
                _figure(row.loaded_mb, 0), _figure(row.peak_mb, 0), _figure(row.memory_mb, 0),
            )
            for row in ledgers.caches
        ],
    )  # fmt: skip


def _drafter_table(ledgers: Ledgers) -> Iterable[str]:
    head = (
        "workload",
        "drafter",
        "calls",
        "µs/call",
        "drafted/call",
        "accepted/call",
        "acceptance",
        "hit rate",
    )
    yield from _table(
        head,
        [
            (
                row.workload, DRAFTERS[row.drafter], str(row.calls), _figure(row.us_per_call, 1),
                _figure(row.drafted_per_call), _figure(row.accepted_per_call, 3), _share(row.acceptance),
                _share(row.hit_rate),
            )
            for row in ledgers.drafters
        ],
    )  # fmt: skip


def _text_lines(ledgers: Ledgers) -> Iterable[str]:
    drafted = [row for row in ledgers.rows if row.workload == ALL and row.variant != NO_DRAFTING]
    answers, same = sum(row.n_answers for row in drafted), sum(row.same_text for row in drafted)
    yield f"{same} of {answers} answers with drafting are the same text as without."
    for found in ledgers.differences:
        batch, alone = found.logits_in_batch, found.logits_one_by_one
        yield (
            f"- {found.workload}, prompt {found.prompt + 1}, {found.variant}: token {found.index} is "
            f"{found.token} instead of {found.expected}; logits in the batch {batch[0]:.6f} and "
            f"{batch[1]:.6f}, one by one {alone[0]:.6f} and {alone[1]:.6f}"
        )


def to_csv(ledgers: Ledgers) -> str:
    """Tidy: one figure a line."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["ledger", "workload", "variant", "metric", "value"])
    for row in ledgers.rows:
        for name, value in asdict(row).items():
            if name not in ("workload", "variant", "acceptance_by_position"):
                writer.writerow(["answer", row.workload, row.variant, name, "" if value is None else value])
        for place, share in enumerate(row.acceptance_by_position):
            cell = "" if share is None else share
            writer.writerow(["answer", row.workload, row.variant, f"acceptance_at_{place + 1}", cell])
    for cache in ledgers.caches:
        for name, value in asdict(cache).items():
            if name != "variant":
                writer.writerow(["cache", ALL, cache.variant, name, "" if value is None else value])
    for drafter in ledgers.drafters:
        for name, value in asdict(drafter).items():
            if name not in ("workload", "drafter"):
                cell = "" if value is None else value
                writer.writerow(["drafter", drafter.workload, drafter.drafter, name, cell])
    for point in ledgers.points:
        writer.writerow(["verification", ALL, NO_DRAFTING, f"decode_{point.batch}_ns", point.median_ns])
    return out.getvalue()


def write_ledgers(ledgers: Ledgers, folder: Path, plots: Path = Path("plots")) -> list[Path]:
    """Write ledgers.md and ledgers.csv into `folder` and the figure under `plots`; the files written."""
    from harness.e2e.ledger_figure import write_figure

    page, table = folder / "ledgers.md", folder / "ledgers.csv"
    write_atomic(page, ledgers.text().encode())
    write_atomic(table, to_csv(ledgers).encode())
    place = folder.resolve()
    return [page, table, *write_figure(ledgers, plots / place.parent.name / place.name)]
