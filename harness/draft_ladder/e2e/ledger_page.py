"""The end-to-end report: a page of tables and sentences, and all figures as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from draft_ladder.base.errors import RunFailedError
from draft_ladder.base.manifests import write_atomic
from draft_ladder.e2e.cost import CostCurve
from draft_ladder.e2e.ledgers import ALL, DRAFTERS, Ledgers, Row
from draft_ladder.e2e.records import NO_DRAFTING
from draft_ladder.report.style import TextTable, format_number
from draft_ladder.report.style import as_markdown as table_markdown


def as_markdown(ledgers: Ledgers) -> str:
    """The page."""
    return "\n".join(_page(ledgers)) + "\n"


def as_report(ledgers: Ledgers) -> dict[str, Any]:
    """All figures and sentences, for JSON."""
    content = asdict(ledgers)
    index = content.pop("index")
    return {"model": index["model"], **content, "sentences": list(sentences(ledgers))}


def sentences(ledgers: Ledgers) -> Iterable[str]:
    """What the figures come to. Nothing in these sentences is typed by hand."""
    index, rows, points = ledgers.index, ledgers.rows, ledgers.points
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
            if variant["group"] == "beyond":
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
    return "–" if value is None else format_number(value, 3)


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.1%}"


def _page(ledgers: Ledgers) -> Iterable[str]:
    index = ledgers.index
    yield f"# Four ledgers: {index['model']['name']} ({index['model']['file']})"
    yield ""
    for sentence in sentences(ledgers):
        yield f"- {sentence}"
    yield ""
    yield "## Drafting, verification and the answer, per generated token"
    yield ""
    yield from _answer_table(ledgers)
    yield ""
    yield (
        "Drafts of one equivalence group are identical, so its variants accept the same tokens: what differs "
        "in a workload between them is drafting time and noise. The answer's time includes the prompt's, and "
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
        "mean accepted length", "acceptance", "by position", "replayed acceptance", "µs/drafted",
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
                _figure(row.mean_accepted_length), _share(row.acceptance), positions,
                _share(row.replayed_acceptance), _figure(row.draft_us_per_drafted, 3),
                _figure(row.replayed_us_per_drafted, 3),
            )
        )  # fmt: skip
    yield table_markdown(TextTable("", head, lines))


def _cache_table(ledgers: Ledgers) -> Iterable[str]:
    corpus = ledgers.static["corpus"]
    size = f"{corpus['bytes'] / 1e6:.1f} MB of " if corpus.get("bytes") else ""
    total = corpus.get("facts", {}).get("total_ns")
    built = f"; counted and written in {total / 1e9:.1f} s" if total else ""
    yield f"Built from {size}{corpus['label']}{built}."
    yield ""
    head = ("variant", "file MB", "converted in s", "load s", "RSS after load MB", "peak RSS MB", "caches MB")
    yield table_markdown(TextTable(
        "", head,
        [
            (
                row.variant, _figure(row.file_mb, 1), _figure(row.convert_s), _digits(row.load_s),
                _figure(row.loaded_mb, 0), _figure(row.peak_mb, 0), _figure(row.memory_mb, 0),
            )
            for row in ledgers.caches
        ],
    ))  # fmt: skip


def _drafter_table(ledgers: Ledgers) -> Iterable[str]:
    head = (
        "workload",
        "drafter",
        "calls",
        "µs/call",
        "drafted/call",
        "mean accepted length",
        "acceptance",
        "hit rate",
    )
    yield table_markdown(TextTable(
        "", head,
        [
            (
                row.workload, DRAFTERS[row.drafter], str(row.calls), _figure(row.us_per_call, 1),
                _figure(row.drafted_per_call), _figure(row.mean_accepted_length, 3), _share(row.acceptance),
                _share(row.hit_rate),
            )
            for row in ledgers.drafters
        ],
    ))  # fmt: skip


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


def write_ledgers(
    ledgers: Ledgers, folder: Path, plots: Path = Path("plots"), failed: list[str] | None = None
) -> list[Path]:
    """Write ledgers.md and ledgers.csv into `folder` and the figure under `plots`; the files written.

    A figure that cannot be drawn is a line in `failed`; RunFailedError where nobody asks for it.
    """
    from draft_ladder.e2e.ledger_figure import write_figure
    from draft_ladder.report.pictures.canvas import drawn_alone

    written = [folder / "ledgers.md", folder / "ledgers.csv"]
    write_atomic(written[0], as_markdown(ledgers).encode())
    write_atomic(written[1], to_csv(ledgers).encode())
    place = folder.resolve()
    sentence = next(iter(sentences(ledgers)))
    lines: list[str] = []
    with drawn_alone("ledgers", lines):
        written += write_figure(ledgers, sentence, plots / place.parent.name / place.name)
    if failed is not None:
        failed += lines
    elif lines:
        raise RunFailedError(lines[0])
    return written
