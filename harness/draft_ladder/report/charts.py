"""Charts from a results folder and nothing else: SVG and PNG, the same bytes for the same records."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator

from draft_ladder.bench.stats import Results, RunRow, run_rows
from draft_ladder.report.caption import absences, caption
from draft_ladder.report.position_chart import draw_positions

mpl.use("Agg")

SIZE_INCHES = (9.6, 6.0)
PNG_DPI = 150
ROOMY_LABEL, CHARACTER_WIDTH = 17, 0.0095  # longer names of variants (with axes) take room from the axes
RC: dict[Any, Any] = {
    "svg.hashsalt": "draft-ladder",  # without it every SVG has new ids
    "svg.fonttype": "path",
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
_GREY = "#555555"


@dataclass(frozen=True)
class Chart:
    """One picture: a metric against corpus size.

    `relative` divides the figures of the lowest rung measured by the variant's; {baseline} is its label.
    """

    name: str
    metric: str
    title: str
    axis: str
    unit: str  # as written behind a figure
    better: str
    log: bool
    relative: bool = False


CHARTS = (
    Chart(
        "draft_latency",
        "draft_latency_us",
        "Draft latency per drafted token (not answer time)",
        "draft + update, µs per drafted token (log scale)",
        " µs",
        "lower is better",
        log=True,
    ),
    Chart(
        "above_floor",
        "times_above_floor",
        "Draft latency over one random memory read a draft step (not answer time)",
        "times the floor of its own file's size (log scale)",
        "×",
        "lower is better",
        log=True,
    ),
    Chart(
        "load_time",
        "load_time_s",
        "Loading the static cache",
        "load time, seconds (log scale)",
        " s",
        "lower is better",
        log=True,
    ),
    Chart(
        "peak_rss",
        "peak_rss_mb",
        "Peak memory of the process",
        "peak RSS, MB",
        " MB",
        "lower is better",
        log=False,
    ),
    Chart(
        "speedup",
        "draft_latency_us",
        "Draft latency: speed-up over {baseline} (not answer time)",
        "times faster than {baseline} (log scale)",
        "×",
        "higher is better",
        log=True,
        relative=True,
    ),
)


@dataclass
class Series:
    """One variant's points: per size the lowest, middle and highest figure, and every single one."""

    name: str
    label: str
    color: str
    marker: str
    dashed: bool
    sizes: list[float] = field(default_factory=list)
    low: list[float] = field(default_factory=list)
    middle: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)
    raw: list[list[float]] = field(default_factory=list)


def write_charts(results: Results, folder: Path) -> list[Path]:
    """Draw every chart that has data into `folder`; the files written."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = run_rows(results.records)
    written = []
    with mpl.rc_context(RC):
        for chart in CHARTS:
            series = collect(chart, rows, results.variants)
            if series:
                written += save(draw(chart, series, results), folder, chart.name)
        positions = draw_positions(results)
        if positions is not None:
            written += save(positions, folder, "acceptance_by_place")
    return written


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """The figure as SVG and PNG, without a date."""
    written = []
    for suffix, options in (("svg", {"metadata": {"Date": None}}), ("png", {"dpi": PNG_DPI})):
        path = folder / f"{name}.{suffix}"
        figure.savefig(path, format=suffix, **options)
        written.append(path)
    return written


# --- data --------------------------------------------------------------------------------------------------


def collect(chart: Chart, rows: Sequence[RunRow], variants: dict[str, dict[str, Any]]) -> list[Series]:
    """The chart's series in ladder order; a size without a figure has no point."""
    values: dict[str, dict[float, list[float]]] = {}
    for row in rows:
        if row.metric == chart.metric and row.timing == "call" and row.value is not None:
            values.setdefault(row.variant, {}).setdefault(row.size_mb, []).append(float(row.value))
    baseline = _baseline(variants)
    if chart.relative:
        values = _relative(values, baseline)
    order = {name: index for index, name in enumerate(variants)}
    series = []
    for label in sorted(values, key=lambda label: (order.get(label.partition("[")[0], len(order)), label)):
        if values[label]:
            series.append(_series(label, values[label], variants))
    return series


def _series(label: str, by_size: dict[float, list[float]], variants: dict[str, dict[str, Any]]) -> Series:
    name, bracket, axes = label.partition("[")
    style = variants.get(name, {})
    series = Series(
        name=label,
        label=str(style.get("label", name)) + (f" [{axes}" if bracket else ""),
        color=str(style.get("color", _GREY)),
        marker=str(style.get("marker", "o")),
        dashed=style.get("group") != "ladder" or bool(bracket),
    )
    for size in sorted(by_size):
        found = sorted(by_size[size])
        series.sizes.append(size)
        series.low.append(found[0])
        series.middle.append(statistics.median(found))
        series.high.append(found[-1])
        series.raw.append(found)
    return series


def _baseline(variants: dict[str, dict[str, Any]]) -> str | None:
    rungs = [(style["rung"], name) for name, style in variants.items() if style.get("rung") is not None]
    return min(rungs)[1] if rungs else None


def _baseline_label(results: Results) -> str:
    baseline = _baseline(results.variants)
    return str(results.variants[baseline].get("label", baseline)) if baseline else "the first rung"


def _relative(
    values: dict[str, dict[float, list[float]]], baseline: str | None
) -> dict[str, dict[float, list[float]]]:
    """Baseline median over each run's figure, where both exist and the variant is another one."""
    medians = {size: statistics.median(found) for size, found in values.get(baseline or "", {}).items()}
    return {
        label: {
            size: [medians[size] / value for value in found]
            for size, found in by_size.items()
            if size in medians
        }
        for label, by_size in values.items()
        if label != baseline
    }


# --- picture -----------------------------------------------------------------------------------------------


def draw(chart: Chart, series: list[Series], results: Results) -> Figure:
    """The whole figure; deterministic."""
    figure = Figure(figsize=SIZE_INCHES)
    FigureCanvasAgg(figure)
    notes = absences(results)
    lines = [*caption(results), *notes]
    bottom = 0.115 + 0.029 * len(lines)
    longest = max(len(item.label) for item in series)
    width = 0.665 - CHARACTER_WIDTH * max(0, longest - ROOMY_LABEL)
    axes = figure.add_axes((0.085, bottom, width, 0.86 - bottom))
    place = horizontal_places([size for item in series for size in item.sizes])
    groups = comparable_sizes(results, {size for item in series for size in item.sizes})
    for index, item in enumerate(series):
        _draw_series(axes, item, groups, place, (index - (len(series) - 1) / 2) * 0.012)
    _dress_vertical(axes, chart, series, results)
    _dress_horizontal(axes, series, place)
    _part_texts(axes, groups, results, place)
    _label_directly(figure, axes, chart, series, place)
    title = chart.title.format(baseline=_baseline_label(results))
    figure.text(0.085, 0.955, title, fontsize=13, fontweight="bold", va="center")
    words = f"{chart.better}  ·  {_runs_text(series)}"
    figure.text(0.085, 0.912, words, fontsize=10, color=_GREY, va="center")
    for index, line in enumerate(lines):
        y = 0.020 + 0.029 * (len(lines) - 1 - index)
        figure.text(0.012, y, line, fontsize=7.5, color="#AA3300" if line in notes else _GREY, va="center")
    return figure


def _runs_text(series: Sequence[Series]) -> str:
    """How many runs a point stands for: not the same everywhere where some failed or are still to be made."""
    counts = sorted({len(found) for item in series for found in item.raw})
    if counts[-1] == 1:
        return "one run"
    number = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    return f"median of {number} runs, bars from lowest to highest, dots are single runs"


def horizontal_places(sizes: Sequence[float]) -> Callable[[float], float]:
    """Corpus size -> place on the axis: 0 to 1 for the logarithm of the sizes, 0 MB apart on the left.

    One size alone stands in the middle.
    """
    positive = sorted({math.log10(size) for size in sizes if size > 0}) or [0.0]
    first, span = positive[0], positive[-1] - positive[0]
    return lambda size: -0.22 if size <= 0 else (math.log10(size) - first) / span if span else 0.5


def comparable_sizes(results: Results, sizes: set[float]) -> list[list[float]]:
    """Neighbouring sizes that replayed one text: a line from real to synthetic text would say nothing."""
    replayed = {record.spec.size_mb: record.spec.replay_text.label for record in results.records}
    return [list(group) for _, group in groupby(sorted(sizes), key=replayed.get)]


def _draw_series(
    axes: Axes, item: Series, groups: list[list[float]], place: Callable[[float], float], shift: float
) -> None:
    xs = [place(size) + shift for size in item.sizes]
    # A size without a figure leaves a gap in the line: nothing is drawn through what was not measured.
    middles = dict(zip(item.sizes, item.middle, strict=True))
    style = "--" if item.dashed else "-"
    for group in groups:
        sizes = [size for size in group if size > 0]
        line = [middles.get(size, math.nan) for size in sizes]
        axes.plot([place(size) + shift for size in sizes], line, style, color=item.color, lw=1.6, zorder=2)
    below = [middle - low for middle, low in zip(item.middle, item.low, strict=True)]
    above = [high - middle for middle, high in zip(item.middle, item.high, strict=True)]
    axes.errorbar(
        xs,
        item.middle,
        yerr=[below, above],
        fmt="none",
        ecolor=item.color,
        elinewidth=1.2,
        capsize=3,
        zorder=3,
    )
    axes.plot(
        xs, item.middle, item.marker, color=item.color, mec="white", mew=0.7, ms=7.5, ls="none", zorder=4
    )
    for x, found in zip(xs, item.raw, strict=True):
        if len(found) > 1:
            axes.plot(
                [x] * len(found),
                found,
                ".",
                color="white",
                mec=item.color,
                mew=0.6,
                ms=4,
                ls="none",
                zorder=5,
            )


def _dress_vertical(axes: Axes, chart: Chart, series: list[Series], results: Results) -> None:
    axes.set_ylabel(chart.axis.format(baseline=_baseline_label(results)))
    axes.grid(axis="y", color="#DDDDDD", lw=0.6, zorder=0)
    axes.set_axisbelow(True)
    lowest = min(min(item.low) for item in series)
    highest = max(max(item.high) for item in series)
    if not chart.log or lowest <= 0:
        axes.set_ylim(0, highest * 1.08)
        axes.yaxis.set_major_formatter(
            FuncFormatter(lambda value, _: f"{value:,.0f}" if highest >= 10 else f"{value:g}")
        )
        return
    axes.set_yscale("log")
    axes.set_ylim(min(lowest, 1.0) / 1.15 if chart.relative else lowest / 1.35, highest * 1.35)
    # Few decades need more ticks than powers of ten to be read at all.
    steps = (1.0, 2.0, 5.0) if highest / lowest < 2000 else (1.0,)
    axes.yaxis.set_major_locator(LogLocator(base=10, subs=steps))
    axes.yaxis.set_major_formatter(
        FuncFormatter(lambda value, _: f"{value:g}" + ("×" if chart.relative else ""))
    )
    axes.yaxis.set_minor_formatter(NullFormatter())
    if chart.relative:
        axes.axhline(1.0, color=_GREY, lw=0.9, ls=":", zorder=1)


def _dress_horizontal(axes: Axes, series: list[Series], place: Callable[[float], float]) -> None:
    sizes = sorted({size for item in series for size in item.sizes})
    axes.xaxis.set_major_locator(FixedLocator([place(size) for size in sizes]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticklabels(["0 (no static\ncache)" if size <= 0 else f"{size:g}" for size in sizes])
    axes.set_xlabel("static corpus, MB of text (10⁶ bytes, log scale)")
    left = place(0) - 0.08 if sizes[0] <= 0 else -0.08
    axes.set_xlim(left, 1.06)
    if sizes[0] <= 0 and len(sizes) > 1:
        # The place of 0 MB is not on the logarithmic scale: break the axis between the two.
        middle = place(0) / 2
        edge = axes.get_xaxis_transform()
        for shift in (-0.008, 0.008):
            xs = [middle + shift - 0.008, middle + shift + 0.008]
            axes.plot(xs, [-0.018, 0.018], color="black", lw=1, transform=edge, clip_on=False, zorder=6)
        axes.axvline(middle, color="#CCCCCC", lw=0.8, ls=(0, (2, 3)), zorder=1)


def _part_texts(
    axes: Axes, groups: list[list[float]], results: Results, place: Callable[[float], float]
) -> None:
    """Where several texts were replayed, a line between them and each part's kind at the top."""
    if len(groups) < 2:
        return
    kinds = {record.spec.size_mb: record.spec.corpus.kind for record in results.records}
    for index, group in enumerate(groups):
        start, end = place(group[0]), place(group[-1])
        words = [f"{kinds[size]} text" for size in group if kinds.get(size, "none") != "none"]
        if words:
            middle = (start + end) / 2
            edge = axes.get_xaxis_transform()
            axes.text(middle, 1.012, words[0], transform=edge, ha="center", fontsize=8, color=_GREY)
        if index > 0:
            border = (place(groups[index - 1][-1]) + start) / 2
            axes.axvline(border, color=_GREY, lw=0.9, ls=(0, (4, 3)), zorder=1)


def _label_directly(
    figure: Figure, axes: Axes, chart: Chart, series: list[Series], place: Callable[[float], float]
) -> None:
    """Each variant's name at the right, level with its last point, pushed apart where they would overlap."""
    figure.canvas.draw()
    to_pixels, height = axes.transData.transform, axes.get_window_extent().height
    wanted = [float(to_pixels((0.0, item.middle[-1]))[1]) for item in series]
    origin = axes.get_window_extent().y0
    gap = 15.0 * figure.dpi / 72.0
    spread_out = spread([y - origin for y in wanted], gap, 0.0, height)
    for item, y in zip(series, spread_out, strict=True):
        value = figure_text(item.middle[-1], chart.unit)
        axes.annotate(
            f"{item.label}  {value}",
            xy=(place(item.sizes[-1]) + 0.015, item.middle[-1]),
            xytext=(1.035, y / height),
            textcoords="axes fraction",
            va="center",
            fontsize=9.5,
            color=darkened(item.color),
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": item.color, "lw": 0.7, "shrinkA": 2, "shrinkB": 4},
        )


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Places near the wanted ones, in their order, at least `gap` apart and inside [low, high] if they fit.

    Labels that would overlap form a group around the mean of their wanted places.
    """
    order = sorted(range(len(wanted)), key=lambda index: wanted[index])
    groups: list[list[int]] = []
    starts: list[float] = []
    for index in order:
        groups.append([index])
        starts.append(min(max(wanted[index], low), high))
        while len(groups) > 1 and starts[-2] + gap * len(groups[-2]) > starts[-1]:
            joined = groups[-2] + groups[-1]
            middle = sum(wanted[member] for member in joined) / len(joined)
            length = gap * (len(joined) - 1)
            groups[-2:] = [joined]
            starts[-2:] = [min(max(middle - length / 2, low), max(high - length, low))]
    places = [0.0] * len(wanted)
    for group, start in zip(groups, starts, strict=True):
        for step, index in enumerate(group):
            places[index] = start + gap * step
    return places


def figure_text(value: float, unit: str) -> str:
    """Three digits, as people write them: 3,750 and 0.0123, never 3.75e+03."""
    digits = max(0, 2 - math.floor(math.log10(abs(value)))) if value else 0
    return f"{value:,.{digits}f}{unit}"


def darkened(color: str) -> tuple[float, float, float]:
    """The colour, dark enough for text on white."""
    red, green, blue = to_rgb(color)
    return red * 0.72, green * 0.72, blue * 0.72
