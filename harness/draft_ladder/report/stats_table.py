"""The summary as tables for people: times, drafts and tails, a line per variant, settings and corpus size."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from draft_ladder.bench.metrics import METRICS, POSITION_PREFIX, Metric
from draft_ladder.bench.settings import label, telling
from draft_ladder.bench.stats import Cell, SummaryRow, by_cell
from draft_ladder.report.style import TextTable, format_number, format_range

Figures = dict[str, SummaryRow]
TITLES = {
    "times": "Times (µs per drafted token, medians; merge is not part of the latency)",
    "drafts": "Drafts",
    "tails": "Tail of a draft call (µs, upper ends of histogram buckets)",
}


def tables(summary: Iterable[SummaryRow]) -> list[TextTable]:
    """Times and drafts; tails too where a histogram pass was made."""
    cells = by_cell(summary)
    timed = {cell: figures for cell, figures in cells.items() if "draft_call_p50_us" in figures}
    return [
        _table(name, title, timed if name == "tails" else cells)
        for name, title in TITLES.items()
        if timed or name != "tails"
    ]


def _table(name: str, title: str, cells: dict[Cell, Figures]) -> TextTable:
    columns: dict[str, Callable[[Figures], str]] = {}
    for metric in METRICS:
        if metric.column is not None and metric.column.table == name:
            columns[metric.column.heading] = _median(metric)
            if metric.column.spread:
                columns["lowest to highest"] = _range(metric)
    if name == "drafts":
        columns["by place in the draft"] = _positions
    names = telling(cell.settings for cell in cells)
    rows = [
        (
            label(cell.variant, cell.settings, names),
            format_number(cell.size_mb, 6),
            *(text(figures) for text in columns.values()),
        )
        for cell, figures in cells.items()
    ]
    return TextTable(title, ("variant", "MB", *columns), rows)


def _median(metric: Metric) -> Callable[[Figures], str]:
    def text(figures: Figures) -> str:
        row = figures.get(metric.name)
        return format_number(None if row is None else row.median, metric.digits)

    return text


def _range(metric: Metric) -> Callable[[Figures], str]:
    def text(figures: Figures) -> str:
        row = figures.get(metric.name)
        return "-" if row is None else format_range(row.min, row.max, metric.digits)

    return text


def _positions(figures: Figures) -> str:
    rows = [row for name, row in figures.items() if name.startswith(POSITION_PREFIX)]
    return " ".join(format_number(row.median) for row in rows) or "-"
