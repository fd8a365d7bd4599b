"""The summary as tables for people: times, drafts and tails, one line per variant and corpus size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from draft_ladder.bench.metrics import POSITION_PREFIX
from draft_ladder.bench.stats import SummaryRow

Figures = dict[str, SummaryRow]


@dataclass(frozen=True)
class TextTable:
    """A title, column names, and rows of text."""

    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


@dataclass(frozen=True)
class Column:
    """One column of a table; `text` gives the cell of a variant at a size."""

    name: str
    text: Callable[[Figures], str]


def figure(value: float | int | None) -> str:
    """Four digits, counts in full, or a dash for what does not exist."""
    if value is None:
        return "-"
    return f"{value:.0f}" if value == int(value) or abs(value) >= 10_000 else f"{value:.4g}"


def _median(metric: str) -> Callable[[Figures], str]:
    return lambda figures: figure(figures[metric].median) if metric in figures else "-"


def _range(metric: str) -> Callable[[Figures], str]:
    def text(figures: Figures) -> str:
        row = figures.get(metric)
        return "-" if row is None or row.min is None else f"{figure(row.min)} to {figure(row.max)}"

    return text


def _positions(figures: Figures) -> str:
    names = [name for name in figures if name.startswith(POSITION_PREFIX)]
    return " ".join(figure(figures[name].median) for name in names) or "-"


_TIMES = (
    Column("latency", _median("draft_latency_us")),
    Column("lowest to highest", _range("draft_latency_us")),
    Column("draft", _median("draft_us")),
    Column("update", _median("update_us")),
    Column("merge", _median("merge_us")),
    Column("µs/call", _median("us_per_call")),
    Column("load s", _median("load_time_s")),
    Column("peak MB", _median("peak_rss_mb")),
)
_DRAFTS = (
    Column("drafted", _median("n_drafted")),
    Column("accepted", _median("n_accept")),
    Column("drafted/call", _median("drafted_per_call")),
    Column("hit rate", _median("hit_rate")),
    Column("acceptance", _median("acceptance")),
    Column("by place in the draft", _positions),
)
_TAILS = tuple(
    Column(name, _median(f"draft_call_{metric}_us"))
    for name, metric in (("p50", "p50"), ("p90", "p90"), ("p99", "p99"), ("p99.9", "p999"), ("max", "max"))
)


def tables(summary: Iterable[SummaryRow]) -> list[TextTable]:
    """Times and drafts; tails too where a histogram pass was made."""
    cells: dict[tuple[str, float], Figures] = {}
    for row in summary:
        cells.setdefault((row.variant, row.size_mb), {})[row.metric] = row
    tail_cells = {key: figures for key, figures in cells.items() if "draft_call_p50_us" in figures}
    made = [
        _table("Times (µs per drafted token, medians; merge is not part of the latency)", _TIMES, cells),
        _table("Drafts", _DRAFTS, cells),
    ]
    if tail_cells:
        made.append(_table("Tail of a draft call (µs, upper ends of histogram buckets)", _TAILS, tail_cells))
    return made


def _table(title: str, columns: tuple[Column, ...], cells: dict[tuple[str, float], Figures]) -> TextTable:
    rows = [
        (variant, f"{size:g}", *(column.text(figures) for column in columns))
        for (variant, size), figures in cells.items()
    ]
    return TextTable(title, ("variant", "MB", *(column.name for column in columns)), rows)


def as_text(table: TextTable) -> str:
    """Aligned columns, names to the left and figures to the right."""
    lines = [table.columns, *table.rows]
    widths = [max(len(line[index]) for line in lines) for index in range(len(table.columns))]

    def aligned(line: tuple[str, ...]) -> str:
        cells = [
            text.ljust(width) if index == 0 else text.rjust(width)
            for index, (text, width) in enumerate(zip(line, widths, strict=True))
        ]
        return "  ".join(cells).rstrip()

    return "\n".join([table.title, *map(aligned, lines)])


def as_markdown(table: TextTable) -> str:
    """A Markdown table."""

    def line(cells: Iterable[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"

    return "\n".join([line(table.columns), line(["---"] * len(table.columns)), *map(line, table.rows)])
