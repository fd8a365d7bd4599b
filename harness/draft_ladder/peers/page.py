"""The peers' page: tables of a request experiment in Markdown, and every figure in CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from draft_ladder.base.manifests import write_atomic
from draft_ladder.base.validation import load_json
from draft_ladder.peers.metrics import METRICS, Cell, cells
from draft_ladder.peers.records import RequestRecord, load_request_records
from draft_ladder.report.style import TextTable, format_number
from draft_ladder.report.style import as_markdown as markdown_table

SETTINGS = (
    "workload",
    "variant",
    "axes",
    "swept",
    "engine",
    "rule",
    "shape",
    "n_draft",
    "history",
    "draft_check",
    "runs",
)


def write_page(folder: Path, name: str = "peers") -> list[Path]:
    """peers.md and peers.csv beside the records of `folder`."""
    records = load_request_records(folder)
    index = load_json(folder / "experiment.json")
    found = cells(records)
    written = []
    for suffix, text in (("md", as_markdown(index, records, found)), ("csv", as_csv(found))):
        path = folder / f"{name}.{suffix}"
        write_atomic(path, text.encode())
        written.append(path)
    return written


def as_csv(found: Sequence[Cell]) -> str:
    """One row a cell: its settings as columns, then every figure, whole."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*SETTINGS, *(metric.name for metric in METRICS)])
    for cell in found:
        spec = cell.record.spec
        axes = ";".join(f"{axis}={value}" for axis, value in sorted(spec.axes.items()))
        settings: list[object] = [
            spec.workload,
            spec.variant,
            axes,
            spec.swept or "",
            spec.engine,
            spec.rule,
            spec.shape,
        ]
        settings += [spec.n_draft, spec.history, cell.record.draft_check or "", cell.runs]
        writer.writerow([*settings, *(_plain(cell.values[metric.name]) for metric in METRICS)])
    return out.getvalue()


def as_markdown(index: dict[str, Any], records: Sequence[RequestRecord], found: Sequence[Cell]) -> str:
    """What was measured, an overview for each draft length and history, and a table for each workload."""
    lines = [f"# Peers: {index['experiment']['name']}", "", *_what(index, records), ""]
    defaults = [cell for cell in found if cell.record.spec.swept is None]
    for shape, words in (("chain", "Chains"), ("tree", "Trees")):
        of_shape = [cell for cell in defaults if cell.record.spec.shape == shape]
        for n_draft, history in sorted({(c.record.spec.n_draft, c.record.spec.history) for c in of_shape}):
            chosen = [
                c for c in of_shape if (c.record.spec.n_draft, c.record.spec.history) == (n_draft, history)
            ]
            heading = f"{words}, n_draft {n_draft}, history {history}"
            lines += [f"## {heading}", "", "Tokens per call:", "", *_overview(chosen, index), ""]
            for workload in _workloads(chosen):
                of_workload = [cell for cell in chosen if cell.record.spec.workload == workload]
                lines += [f"### {workload} ({heading.lower()})", "", *_details(of_workload, index), ""]
    lines += _swept(found, index)
    lines += ["## What each figure means", ""]
    lines += [f"- {metric.words}: {metric.meaning}" for metric in METRICS]
    return "\n".join(lines) + "\n"


def _what(index: dict[str, Any], records: Sequence[RequestRecord]) -> list[str]:
    """The sentences that belong to every figure of the page."""
    lines = [
        "A draft is not an answer: responses that models gave are replayed, which equals greedy decoding of "
        "that text and no more. Drafts are made inside responses, from the second token on.",
    ]
    kinds: dict[str, RequestRecord] = {record.spec.workload: record for record in records}
    lines += ["", "| workload | requests | response tokens |", "| --- | --- | --- |"]
    lines += [
        f"| {name} | {record.spec.n_requests:,} | {record.spec.n_response_tokens:,} |"
        for name, record in sorted(kinds.items())
    ]
    limit = index["experiment"]["n_ctx"]
    longer = {
        record.spec.workload: record.measured["n_long_requests"]
        for record in records
        if record.measured and record.measured.get("n_long_requests")
    }
    if longer:
        cut = ", ".join(f"{count} of {name}" for name, count in sorted(longer.items()))
        lines += ["", f"Longer than n_ctx {limit} and replayed whole: {cut}."]
    failed = [record for record in records if record.status == "failed"]
    for record in failed:
        assert record.failure is not None
        lines += ["", f"Failed: {record.spec.describe()}: {record.failure.reason}: {record.failure.detail}."]
    for name, reason in sorted(index.get("skipped", {}).items()):
        lines += ["", f"Not measured: {name}: {reason}."]
    return lines


def _overview(chosen: Sequence[Cell], index: dict[str, Any]) -> list[str]:
    """Drafters by workloads."""
    workloads = _workloads(chosen)
    names = list(dict.fromkeys(cell.record.spec.variant for cell in chosen))
    by_place = {(cell.record.spec.variant, cell.record.spec.workload): cell for cell in chosen}

    def row(name: str) -> list[str]:
        figures = [by_place.get((name, workload)) for workload in workloads]
        return [
            _name(name, index),
            *(format_number(cell.values["tokens_per_call"], 4) if cell else "-" for cell in figures),
        ]

    return _table(["drafter", *workloads], [row(name) for name in names])


def _details(chosen: Sequence[Cell], index: dict[str, Any]) -> list[str]:
    """All figures of one workload; the engines apart, since Python's calls cost what C++'s do not."""
    rows = []
    for engine in ("native", "python"):
        for cell in chosen:
            spec = cell.record.spec
            if spec.engine == engine:
                figures = [format_number(cell.values[metric.name], metric.digits) for metric in METRICS]
                rows.append([_name(spec.variant, index), engine, cell.record.draft_check or "", *figures])
    return _table(["drafter", "engine", "drafts", *(metric.words for metric in METRICS)], rows)


def _swept(found: Sequence[Cell], index: dict[str, Any]) -> list[str]:
    swept = [cell for cell in found if cell.record.spec.swept is not None]
    if not swept:
        return []
    rows = []
    for cell in swept:
        spec = cell.record.spec
        value = spec.axes[spec.swept or ""]
        figures = [cell.values[name] for name in ("tokens_per_call", "drafted_per_call", "draft_median_us")]
        rows.append(
            [
                spec.workload,
                _name(spec.variant, index),
                f"{spec.swept} {value}",
                str(spec.n_draft),
                spec.history,
            ]
            + [format_number(figure, 4) for figure in figures]
        )
    headings = ["workload", "drafter", "knob", "n_draft", "history", "tokens per call", "drafted per call"]
    return ["## Sweeps", "", *_table([*headings, "draft median, us"], rows), ""]


def _name(variant: str, index: dict[str, Any]) -> str:
    return str(index["variants"].get(variant, {}).get("label", variant))


def _workloads(chosen: Iterable[Cell]) -> list[str]:
    return sorted({cell.record.spec.workload for cell in chosen})


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [markdown_table(TextTable("", tuple(headings), [tuple(row) for row in rows]))]


def _plain(value: float | None) -> str:
    return "" if value is None else repr(value)
