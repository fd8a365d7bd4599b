"""The chart of an ablation: how many times better over the sizes, a panel per metric."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from draft_ladder.bench.metrics import shown_in
from draft_ladder.bench.stats import Results
from draft_ladder.report.ablate import Ratio
from draft_ladder.report.caption import absences, caption
from draft_ladder.report.drawing import horizontal_places
from draft_ladder.report.pictures.canvas import new_figure, own_settings, save
from draft_ladder.report.style import GREY, WARNING

USUAL_LINES, LINE_HEIGHT = 4, 0.035  # below the panels; further lines take room from them


def write_chart(found: Sequence[Ratio], results: Results, names: tuple[str, str], folder: Path) -> list[Path]:
    """The ratios and their spread over the sizes, a panel per metric; SVG and PNG."""
    folder.mkdir(parents=True, exist_ok=True)
    with own_settings():
        return save(draw_ratios(found, results, names), folder, names[0])


def draw_ratios(found: Sequence[Ratio], results: Results, names: tuple[str, str]) -> Figure:
    """The figure; deterministic."""
    metrics = [
        metric for metric in shown_in("ablate").values() if any(one.metric == metric.name for one in found)
    ]
    drawing = new_figure(3.2 * len(metrics), 4.6)
    changed = results.variants.get(names[0], {})
    notes = absences(results)
    lines = [
        "above 1 is better; bars from lowest to highest ratio of single runs  ·  "
        f"{changed.get('changes', '')}",
        *caption(results),
        *notes,
    ]
    further = LINE_HEIGHT * max(0, len(lines) - USUAL_LINES)
    left, width = 0.05, 0.94 / len(metrics)
    for index, metric in enumerate(metrics):
        axes = drawing.add_axes((left + index * width, 0.27 + further, width * 0.8, 0.52 - further))
        own = [one for one in found if one.metric == metric.name]
        _draw_panel(axes, own, str(changed.get("color", GREY)))
        axes.set_title(metric.words, fontsize=9)
    drawing.text(left, 0.93, f"{names[0]}: times better than {names[1]}", fontsize=12, fontweight="bold")
    for index, line in enumerate(lines):
        y, color = 0.12 + further - LINE_HEIGHT * index, WARNING if line in notes else GREY
        drawing.text(0.01, y, line, fontsize=6, color=color)
    return drawing


def _draw_panel(axes: Axes, own: Sequence[Ratio], color: str) -> None:
    place = horizontal_places([one.size_mb for one in own])
    xs = [place(one.size_mb) for one in own]
    middles = [one.ratio for one in own]
    below = [one.ratio - one.low for one in own]
    above = [one.high - one.ratio for one in own]
    axes.axhline(1.0, color=GREY, lw=0.9, ls=":")
    axes.errorbar(xs, middles, yerr=[below, above], fmt="o-", color=color, capsize=3, lw=1.4, ms=5)
    axes.xaxis.set_major_locator(FixedLocator(xs))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticklabels([f"{one.size_mb:g}" for one in own], fontsize=7)
    axes.set_xlabel("corpus, MB", fontsize=8)
    axes.tick_params(axis="y", labelsize=8)
    lowest, highest = min(0.95, *(one.low for one in own)), max(1.05, *(one.high for one in own))
    margin = (highest - lowest) * 0.08
    axes.set_ylim(lowest - margin, highest + margin)
