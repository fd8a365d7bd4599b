"""From run records to figures: one tidy row per run and metric, and their median, minimum and maximum.

Pure functions of a results folder. A figure that does not exist is an empty field with a note, never NaN.
"""

from __future__ import annotations

import csv
import io
import statistics
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from draft_ladder.base.errors import DraftsDifferError, InputError
from draft_ladder.base.manifests import write_atomic
from draft_ladder.base.validation import load_json
from draft_ladder.bench.metrics import metric_values, own_timing
from draft_ladder.bench.records import (
    RunRecord,
    load_plan,
    load_records,
    refuse_differing_drafts,
)
from draft_ladder.bench.settings import Settings, names_of

# The settings' own columns follow size_mb.
RUN_FIELDS = ("variant", "size_mb", "repeat", "timing", "metric", "value", "unit", "note")
SUMMARY_FIELDS = ("variant", "size_mb", "metric", "unit", "n", "median", "min", "max")


@dataclass(frozen=True)
class RunRow:
    """One row of runs.csv: a figure of one run, with its note where there is none."""

    variant: str
    settings: Settings
    size_mb: float
    repeat: int
    timing: str
    metric: str
    value: float | int | None
    unit: str
    note: str


@dataclass(frozen=True)
class SummaryRow:
    """One row of summary.csv; `n` counts the runs that have the figure."""

    variant: str
    settings: Settings
    size_mb: float
    metric: str
    unit: str
    n: int
    median: float | int | None
    min: float | int | None
    max: float | int | None


@dataclass(frozen=True)
class Results:
    """Everything a results folder holds."""

    folder: Path
    experiment: dict[str, Any]
    variants: dict[str, dict[str, Any]]
    machine: dict[str, Any]
    records: list[RunRecord]
    missing_total: int
    superseded_total: int
    corpus_statistics: dict[str, dict[str, Any]] = field(default_factory=dict)  # by size, as in "541"


def load_results(folder: Path) -> Results:
    """Read a results folder: the current plan's records; what it no longer asks for is only counted.

    DraftsDifferError where records that must draft alike do not, whatever the runner made of them.
    """
    content = load_plan(folder / "experiment.json")
    keys = content["keys"]
    records = load_records(folder / "runs", keys)
    for record in records:
        _check_measured(record, folder / "runs" / f"{record.key}.json")
    refuse_differing_drafts(records, folder / "runs")
    present = {path.stem for path in (folder / "runs").glob("*.json")}
    return Results(
        folder=folder,
        experiment=content["experiment"],
        variants=content["variants"],
        machine=load_json(folder / "machine.json"),
        records=records,
        missing_total=len(keys) - len(records),
        superseded_total=len(present - set(keys)),
        corpus_statistics=content.get("corpus_statistics", {}),
    )


def _check_measured(record: RunRecord, path: Path) -> None:
    """InputError where a record that says `ok` holds figures that no run can have."""
    if record.status != "ok":
        return
    measured, problem = record.measured or {}, None
    try:
        figures = {
            name: int(measured[name]) for name in ("n_accept", "n_drafted", "hit_calls", "draft_calls")
        }
        values = {metric.name: value for metric, value in metric_values(measured, record.spec.timing)}
        below = [name for name, value in values.items() if value is not None and value < 0]
        if below:
            problem = f"{below[0]} is negative"
        elif figures["n_accept"] > figures["n_drafted"] or figures["hit_calls"] > figures["draft_calls"]:
            problem = "more was accepted than drafted, or more calls drafted than there were"
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        problem = f"is no report of a run ({type(error).__name__}: {error})"
    if problem is not None:
        raise InputError(f"{path}: measured", problem, "remove it and run again")


def run_rows(records: Iterable[RunRecord]) -> list[RunRow]:
    """One row per finished run and metric, sorted; failed runs and warm-ups have none."""
    rows = []
    for record in records:
        if record.status != "ok" or record.spec.warmup or record.measured is None:
            continue
        spec, settings = record.spec, Settings.of(record.spec)
        for metric, value in metric_values(record.measured, spec.timing):
            note = metric.why_absent(spec.n_draft) if value is None else ""
            about = (spec.variant, settings, spec.size_mb, spec.repeat, spec.timing)
            rows.append(RunRow(*about, metric.name, value, metric.unit, note))
    # The metrics of one run keep the order they came in.
    return sorted(
        rows, key=lambda row: (row.variant, row.settings.order, row.size_mb, row.repeat, row.timing)
    )


def summarize(rows: Iterable[RunRow]) -> list[SummaryRow]:
    """Median, minimum and maximum over the repeats, of the runs in each metric's own timing mode."""
    groups: dict[tuple[str, Settings, float, str, str], list[float | int]] = {}
    for row in rows:
        if row.timing == own_timing(row.metric):
            group = (row.variant, row.settings, row.size_mb, row.metric, row.unit)
            values = groups.setdefault(group, [])
            if row.value is not None:
                values.append(row.value)
    summary = []
    for group, values in groups.items():
        figures = (statistics.median(values), min(values), max(values)) if values else (None, None, None)
        summary.append(SummaryRow(*group, len(values), *figures))
    return summary


class Cell(NamedTuple):
    """What the figures of a summary are of: a variant at its settings and a corpus size (MB)."""

    variant: str
    settings: Settings
    size_mb: float


def by_cell(summary: Iterable[SummaryRow]) -> dict[Cell, dict[str, SummaryRow]]:
    """Every cell's figures by metric, in the summary's order."""
    cells: dict[Cell, dict[str, SummaryRow]] = {}
    for row in summary:
        cells.setdefault(Cell(row.variant, row.settings, row.size_mb), {})[row.metric] = row
    return cells


def failures(records: Iterable[RunRecord]) -> list[str]:
    """One line per failed run."""
    return [
        f"{record.spec.describe()}: {record.failure.reason}: {record.failure.detail}"
        for record in records
        if record.failure is not None
    ]


def refuse_marked(results: Results, variants: Iterable[str]) -> None:
    """DraftsDifferError where the runner found that one of these variants drafts differently."""
    names = set(variants)
    for record in results.records:
        if record.spec.variant in names and record.draft_check == "differ":
            raise DraftsDifferError(
                f"{results.folder / 'runs' / record.key}.json: {record.spec.describe()} drafts differently, "
                "its figures say nothing; find out which is wrong (`ladder audit`) and run again"
            )


def write_csv_files(results: Results) -> tuple[list[RunRow], list[SummaryRow]]:
    """runs.csv and summary.csv in the results folder."""
    rows = run_rows(results.records)
    summary = summarize(rows)
    write_atomic(results.folder / "runs.csv", to_csv(RUN_FIELDS, rows).encode())
    write_atomic(results.folder / "summary.csv", to_csv(SUMMARY_FIELDS, summary).encode())
    return rows, summary


def to_csv(fields: Sequence[str], rows: Collection[RunRow] | Collection[SummaryRow]) -> str:
    """CSV with a header line, every setting a column after size_mb; what is absent is an empty field."""
    settings = names_of(row.settings for row in rows)
    names = [name for field in fields for name in ((field, *settings) if field == "size_mb" else (field,))]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    for row in rows:
        cells = {**vars(row), **row.settings}
        writer.writerow([_cell(cells.get(name)) for name in names])
    return text.getvalue()


def _cell(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.9g}" if isinstance(value, float) else str(value)
