"""Acceptance by place in the draft: one line per variant, at the largest corpus size of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from draft_ladder.bench.metrics import POSITION_PREFIX
from draft_ladder.bench.stats import Results, RunRow, run_rows, summarize
from draft_ladder.report.caption import caption


@dataclass(frozen=True)
class PositionSeries:
    """One variant at one size. `shares`: by place in the draft, None where nothing was drafted."""

    variant: str
    label: str
    color: str
    marker: str
    size_mb: float
    shares: tuple[float | None, ...]
    n_drafted: float | None
    n_accept: float | None
    hit_rate: float | None


def collect_positions(rows: Sequence[RunRow], variants: dict[str, dict[str, Any]]) -> list[PositionSeries]:
    """The series of the largest size, in ladder order."""
    largest = max((row.size_mb for row in rows), default=0.0)
    found: dict[str, dict[str, float | None]] = {}
    for row in summarize(row for row in rows if row.size_mb == largest):
        found.setdefault(row.variant, {})[row.metric] = row.median
    order = {name: index for index, name in enumerate(variants)}
    series = []
    for label in sorted(found, key=lambda label: (order.get(label.partition("[")[0], len(order)), label)):
        figures = found[label]
        shares = tuple(value for name, value in figures.items() if name.startswith(POSITION_PREFIX))
        name, bracket, axes = label.partition("[")
        style = variants.get(name, {})
        if shares:
            series.append(
                PositionSeries(
                    label,
                    str(style.get("label", name)) + bracket + axes,
                    str(style.get("color", "#555555")),
                    str(style.get("marker", "o")),
                    largest,
                    shares,
                    figures.get("n_drafted"),
                    figures.get("n_accept"),
                    figures.get("hit_rate"),
                )
            )
    return series


def draw_positions(results: Results) -> Figure | None:
    """The figure, or None where no run has the counts."""
    series = collect_positions(run_rows(results.records), results.variants)
    if not series:
        return None
    figure = Figure(figsize=(9.6, 6.0))
    FigureCanvasAgg(figure)
    lines = caption(results)
    bottom = 0.105 + 0.029 * len(lines)
    axes = figure.add_axes((0.085, bottom, 0.56, 0.85 - bottom))
    for item in series:
        places = [index + 1 for index, share in enumerate(item.shares) if share is not None]
        shares = [share for share in item.shares if share is not None]
        axes.plot(
            places,
            shares,
            marker=item.marker,
            color=item.color,
            lw=1.4,
            ms=6,
            mec="white",
            label=f"{item.label}: {counts_text(item)}",
        )
    axes.set_ylim(0, 1)
    axes.grid(axis="y", color="#DDDDDD", lw=0.6)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("place in the draft")
    axes.set_ylabel("accepted, of the tokens drafted at this place")
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=7.5, frameon=False)
    size = f"{series[0].size_mb:g} MB of corpus" if series[0].size_mb else "no static cache"
    figure.text(
        0.085, 0.93, f"Acceptance by place in the draft ({size})", fontsize=13, fontweight="bold", va="center"
    )
    for index, line in enumerate(lines):
        y = 0.020 + 0.029 * (len(lines) - 1 - index)
        figure.text(0.012, y, line, fontsize=7.5, color="#555555", va="center")
    return figure


def counts_text(item: PositionSeries) -> str:
    """What a line of the legend says of its variant."""
    hit = "-" if item.hit_rate is None else f"{item.hit_rate:.1%}"
    return f"{_count(item.n_accept)} of {_count(item.n_drafted)}, hit rate {hit}"


def _count(value: float | None) -> str:
    return "-" if value is None else f"{value:,.12g}"
