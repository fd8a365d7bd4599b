"""One chart as a figure: axes, series, labels beside them, and the words around the picture."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator

from draft_ladder.bench.metrics import Picture
from draft_ladder.bench.settings import AXES, natural
from draft_ladder.bench.stats import Results
from draft_ladder.report.caption import absences, caption
from draft_ladder.report.pictures.canvas import new_figure, settle_texts
from draft_ladder.report.series import SIZE, Chart, Series, X, baseline, size_text
from draft_ladder.report.style import GREY, PALE, SIZE_INCHES, WARNING, darkened, format_number

ROOMY_LABEL, CHARACTER_WIDTH = 17, 0.0095  # longer names of variants (with axes) take room from the axes
MAX_STEP, MAX_SHIFT = 0.012, 0.055  # series stand side by side, and never beyond the axes or their break
LINE_HEIGHT = 0.029  # of a line below the picture, as a share of its height
Places = Callable[[X], float]


def draw(chart: Chart, series: list[Series], results: Results) -> Figure:
    """The whole figure; deterministic."""
    figure, axes, bottom = framed(results, bottom=0.115)
    longest = max(len(item.look.label) for item in series)
    width = 0.665 - CHARACTER_WIDTH * max(0, longest - ROOMY_LABEL)
    axes.set_position((0.085, bottom, width, 0.86 - bottom))
    xs = {x for item in series for x in item.xs}
    place = places_of(chart, xs)
    groups = comparable(chart, results, xs)
    step = min(MAX_STEP, MAX_SHIFT * 2 / len(series))
    for index, item in enumerate(series):
        _draw_series(axes, item, groups, place, (index - (len(series) - 1) / 2) * step)
    title, axis = words_of(chart, results)
    _dress_vertical(axes, chart, series, axis)
    _dress_horizontal(axes, chart, xs, place)
    if chart.x == SIZE:
        _part_texts(axes, groups, results, place)
    _label_directly(figure, axes, chart, series, place)
    figure.text(0.085, 0.955, title, fontsize=13, fontweight="bold", va="center")
    better = "higher" if chart.relative else chart.metric.better
    words = [f"{better} is better"] if better else []
    if chart.x != SIZE:
        words.append(size_text(max(record.spec.size_mb for record in results.records)))
    text = "  ·  ".join([*words, _runs_text(series)])
    figure.text(0.085, 0.912, text, fontsize=10, color=GREY, va="center")
    write_foot(figure, results)
    return figure


def framed(results: Results, bottom: float) -> tuple[Figure, Axes, float]:
    """A figure, empty axes, and how high these begin: `bottom` above the lines that `write_foot` writes."""
    figure = new_figure(*SIZE_INCHES)
    lines = [*caption(results), *absences(results)]
    return figure, figure.add_axes((0, 0, 1, 1)), bottom + LINE_HEIGHT * len(lines)


def write_foot(figure: Figure, results: Results) -> None:
    """Where the figures come from, and what the picture cannot show."""
    notes = absences(results)
    lines = [*caption(results), *notes]
    for index, line in enumerate(lines):
        y = 0.020 + LINE_HEIGHT * (len(lines) - 1 - index)
        figure.text(0.012, y, line, fontsize=7.5, color=WARNING if line in notes else GREY, va="center")


def words_of(chart: Chart, results: Results) -> tuple[str, str]:
    """The title and the words of the vertical axis."""
    metric = chart.metric
    named = metric.words or metric.name
    picture = metric.picture or Picture(chart.name, named.capitalize(), f"{named}, {metric.unit}")
    title, axis = picture.title, picture.axis
    if chart.relative:
        lowest = baseline(results.variants)
        over = str(results.variants[lowest].get("label", lowest)) if lowest else "the first rung"
        gain, better = ("speed-up", "faster") if metric.unit in ("us", "s") else ("gain", "better")
        title, axis = f"{named.capitalize()}: {gain} over {over}", f"times {better} than {over}"
    caveat = f" ({picture.caveat})" if picture.caveat else ""
    return f"{title}{caveat}", f"{axis} (log scale)" if _is_log(chart) else axis


def _is_log(chart: Chart) -> bool:
    return chart.relative or chart.metric.picture is None or chart.metric.picture.log


def _runs_text(series: Sequence[Series]) -> str:
    """How many runs a point stands for: not the same everywhere where some failed or are still to be made."""
    counts = sorted({len(found) for item in series for found in item.raw})
    if counts[-1] == 1:
        return "one run"
    number = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    return f"median of {number} runs, bars from lowest to highest, dots are single runs"


def places_of(chart: Chart, xs: Iterable[X]) -> Places:
    """Value of the horizontal setting -> place on the axis; other settings stand evenly, in order."""
    if chart.x == SIZE:
        return horizontal_places([float(x) for x in xs])
    ordered = sorted(xs, key=natural)
    return lambda x: ordered.index(x) / max(1, len(ordered) - 1)


def horizontal_places(sizes: Sequence[float]) -> Places:
    """Corpus size -> place on the axis: 0 to 1 for the logarithm of the sizes, 0 MB apart on the left.

    One size alone stands in the middle.
    """
    positive = sorted({math.log10(size) for size in sizes if size > 0}) or [0.0]
    first, span = positive[0], positive[-1] - positive[0]

    def place(x: X) -> float:
        size = float(x)
        return -0.22 if size <= 0 else (math.log10(size) - first) / span if span else 0.5

    return place


def comparable(chart: Chart, results: Results, xs: Iterable[X]) -> list[list[X]]:
    """Neighbouring places that a line may join: sizes that replayed one text, settings that are numbers.

    A line from real to synthetic text would say nothing, nor one between two hashes. 0 MB stands apart.
    """
    ordered = sorted(xs, key=natural)
    if chart.x != SIZE:
        numbers = all(natural(x)[1] == "" for x in ordered)
        return [ordered] if numbers else [[x] for x in ordered]
    replayed: dict[X, str] = {
        record.spec.size_mb: record.spec.replay_text.label for record in results.records
    }
    return [list(group) for _, group in groupby(ordered, key=replayed.get)]


def _draw_series(axes: Axes, item: Series, groups: list[list[X]], place: Places, shift: float) -> None:
    xs, color = [place(x) + shift for x in item.xs], item.look.color
    # A place without a figure leaves a gap in the line: nothing is drawn through what was not measured.
    middles = dict(zip(item.xs, item.middle, strict=True))
    for group in groups:
        joined = [x for x in group if place(x) >= 0]
        line = [middles.get(x, math.nan) for x in joined]
        axes.plot([place(x) + shift for x in joined], line, item.look.line, color=color, lw=1.6, zorder=2)
    below = [middle - low for middle, low in zip(item.middle, item.low, strict=True)]
    above = [high - middle for middle, high in zip(item.middle, item.high, strict=True)]
    bars: dict[str, Any] = {"fmt": "none", "ecolor": color, "elinewidth": 1.2, "capsize": 3, "zorder": 3}
    axes.errorbar(xs, item.middle, yerr=[below, above], **bars)
    dots: dict[str, Any] = {"color": color, "mec": "white", "mew": 0.7, "ms": 7.5, "ls": "none", "zorder": 4}
    axes.plot(xs, item.middle, item.look.marker, **dots)
    single: dict[str, Any] = {"color": "white", "mec": color, "mew": 0.6, "ms": 4, "ls": "none", "zorder": 5}
    for x, found in zip(xs, item.raw, strict=True):
        if len(found) > 1:
            axes.plot([x] * len(found), found, ".", **single)


def _dress_vertical(axes: Axes, chart: Chart, series: list[Series], words: str) -> None:
    axes.set_ylabel(words)
    axes.grid(axis="y", color=PALE, lw=0.6, zorder=0)
    axes.set_axisbelow(True)
    lowest = min(min(item.low) for item in series)
    highest = max(max(item.high) for item in series)
    sign = "×" if chart.relative else ""
    written = FuncFormatter(lambda value, _: format_number(value) + sign)
    axes.yaxis.set_major_formatter(written)
    if not _is_log(chart) or lowest <= 0:
        axes.set_ylim(0, highest * 1.08)
        return
    axes.set_yscale("log")
    axes.set_ylim(min(lowest, 1.0) / 1.15 if chart.relative else lowest / 1.35, highest * 1.35)
    # Few decades need more ticks than powers of ten to be read at all.
    steps = (1.0, 2.0, 5.0) if highest / lowest < 2000 else (1.0,)
    axes.yaxis.set_major_locator(LogLocator(base=10, subs=steps))
    axes.yaxis.set_major_formatter(written)
    axes.yaxis.set_minor_formatter(NullFormatter())
    if chart.relative:
        axes.axhline(1.0, color=GREY, lw=0.9, ls=":", zorder=1)


def _dress_horizontal(axes: Axes, chart: Chart, found: Iterable[X], place: Places) -> None:
    xs = sorted(found, key=natural)
    axes.xaxis.set_major_locator(FixedLocator([place(x) for x in xs]))
    axes.xaxis.set_minor_locator(NullLocator())
    apart = place(xs[0]) < 0  # 0 MB
    names = [f"{x:g}" if isinstance(x, float) else str(x) for x in xs]
    axes.set_xticklabels(["0 (no static\ncache)", *names[1:]] if apart else names)
    words = "static corpus, MB of text (10⁶ bytes, log scale)"
    axes.set_xlabel(words if chart.x == SIZE else chart.x.removeprefix(AXES))
    axes.set_xlim((place(xs[0]) if apart else 0.0) - 0.08, 1.06)
    if apart and len(xs) > 1:
        # The place of 0 MB is not on the logarithmic scale: break the axis between the two.
        middle = place(xs[0]) / 2
        edge = axes.get_xaxis_transform()
        for shift in (-0.008, 0.008):
            ends = [middle + shift - 0.008, middle + shift + 0.008]
            axes.plot(ends, [-0.018, 0.018], color="black", lw=1, transform=edge, clip_on=False, zorder=6)
        axes.axvline(middle, color="#CCCCCC", lw=0.8, ls=(0, (2, 3)), zorder=1)


def _part_texts(axes: Axes, groups: list[list[X]], results: Results, place: Places) -> None:
    """Where several texts were replayed, a line between them and each part's kind at the top."""
    if len(groups) < 2:
        return
    kinds: dict[X, str] = {record.spec.size_mb: record.spec.corpus.kind for record in results.records}
    for index, group in enumerate(groups):
        start, end = place(group[0]), place(group[-1])
        words = [f"{kinds[size]} text" for size in group if kinds.get(size, "none") != "none"]
        if words:
            middle = (start + end) / 2
            edge = axes.get_xaxis_transform()
            axes.text(middle, 1.012, words[0], transform=edge, ha="center", fontsize=8, color=GREY)
        if index > 0:
            border = (place(groups[index - 1][-1]) + start) / 2
            axes.axvline(border, color=GREY, lw=0.9, ls=(0, (4, 3)), zorder=1)


def _label_directly(figure: Figure, axes: Axes, chart: Chart, series: list[Series], place: Places) -> None:
    """Each variant's name at the right, level with its last point, pushed apart where they would overlap.

    A line leads to where its label begins: what stays left of all labels crosses none.
    """
    settle_texts(figure)
    figure.canvas.draw()
    to_pixels, height = axes.transData.transform, axes.get_window_extent().height
    last = [item.middle[-1] for item in series]
    wanted = [float(to_pixels((0.0, value))[1]) for value in last]
    origin = axes.get_window_extent().y0
    gap = 15.0 * figure.dpi / 72.0
    suffix = "×" if chart.relative else chart.metric.suffix
    spread_out = spread([y - origin for y in wanted], gap, 0.0, height)
    for item, value, y in zip(series, last, spread_out, strict=True):
        axes.annotate(
            f"{item.look.label}  {format_number(value, 3, pad=True)}{suffix}",
            xy=(place(item.xs[-1]) + 0.015, value),
            xytext=(1.035, y / height),
            textcoords="axes fraction",
            va="center",
            fontsize=9.5,
            color=darkened(item.look.color),
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": item.look.color,
                "lw": 0.7,
                "relpos": (0, 0.5),
                "shrinkA": 2,
                "shrinkB": 4,
            },
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
