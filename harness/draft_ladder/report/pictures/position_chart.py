"""Acceptance by place in the draft: a line per variant and settings, at the largest corpus size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from draft_ladder.bench.metrics import POSITION_PREFIX
from draft_ladder.bench.settings import Settings
from draft_ladder.bench.stats import Results, RunRow, by_cell, run_rows, summarize
from draft_ladder.report.drawing import framed, write_foot
from draft_ladder.report.series import Look, Variants, looks_of, size_text
from draft_ladder.report.style import PALE, format_number


@dataclass(frozen=True)
class PositionSeries:
    """One variant at one size. `shares`: by place in the draft, None where nothing was drafted."""

    variant: str
    settings: Settings
    look: Look
    size_mb: float
    shares: tuple[float | None, ...]
    n_drafted: float | None
    n_accept: float | None
    hit_rate: float | None


def collect_positions(rows: Sequence[RunRow], variants: Variants) -> list[PositionSeries]:
    """The series of the largest size, in ladder order."""
    largest = max((row.size_mb for row in rows), default=0.0)
    cells = by_cell(summarize(row for row in rows if row.size_mb == largest))
    found = {(cell.variant, cell.settings): figures for cell, figures in cells.items()}
    series = []
    for subject, look in looks_of(found, variants).items():
        figures = {name: row.median for name, row in found[subject].items()}
        shares = tuple(value for name, value in figures.items() if name.startswith(POSITION_PREFIX))
        if shares:
            counts = (figures.get(name) for name in ("n_drafted", "n_accept", "hit_rate"))
            series.append(PositionSeries(*subject, look, largest, shares, *counts))
    return series


def draw_positions(results: Results) -> Figure | None:
    """The figure, or None where no run has the counts."""
    series = collect_positions(run_rows(results.records), results.variants)
    if not series:
        return None
    figure, axes, bottom = framed(results, bottom=0.105)
    axes.set_position((0.085, bottom, 0.56, 0.85 - bottom))
    for item in series:
        places = [index + 1 for index, share in enumerate(item.shares) if share is not None]
        shares = [share for share in item.shares if share is not None]
        text = f"{item.look.label}: {counts_text(item)}"
        axes.plot(
            places,
            shares,
            lw=1.4,
            ms=6,
            mec="white",
            label=text,
            marker=item.look.marker,
            color=item.look.color,
        )
    axes.set_ylim(0, 1)
    axes.grid(axis="y", color=PALE, lw=0.6)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("place in the draft")
    axes.set_ylabel("accepted, of the tokens drafted at this place")
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=7.5, frameon=False)
    title = f"Acceptance by place in the draft ({size_text(series[0].size_mb)})"
    figure.text(0.085, 0.93, title, fontsize=13, fontweight="bold", va="center")
    write_foot(figure, results)
    return figure


def counts_text(item: PositionSeries) -> str:
    """What a line of the legend says of its variant."""
    hit = "-" if item.hit_rate is None else f"{item.hit_rate:.1%}"
    return f"{format_number(item.n_accept)} of {format_number(item.n_drafted)}, hit rate {hit}"
