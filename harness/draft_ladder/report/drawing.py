"""One chart as a figure: axes, series, labels beside them, and the words around the picture."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from textwrap import wrap
from typing import Any

from matplotlib.axes import Axes
from matplotlib.axis import Axis, YAxis
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator

from draft_ladder.bench.metrics import Picture
from draft_ladder.bench.settings import AXES, natural
from draft_ladder.bench.stats import Results
from draft_ladder.report.caption import absences, caption
from draft_ladder.report.pictures.canvas import new_figure, settle_texts
from draft_ladder.report.series import SIZE, Chart, Series, X, baseline, size_text
from draft_ladder.report.style import GREY, MAX_SERIES, PALE, SIZE_INCHES, WARNING, darkened, format_number

ROOMY_LABEL, CHARACTER_WIDTH = 17, 0.0095  # longer names of variants (with axes) take room from the axes
MAX_STEP, MAX_SHIFT = 0.012, 0.055  # series stand side by side, and never beyond the axes or their break
LINE_HEIGHT = 0.029  # of a line below the picture, as a share of its height
Places = Callable[[X], float]


def draw(chart: Chart, series: list[Series], results: Results) -> Figure:
    """The whole figure; deterministic."""
    if chart.x == SIZE and len({x for item in series for x in item.xs}) == 1:
        return _draw_dots(chart, series, results)
    if len(series) > MAX_SERIES:
        return _draw_panels(chart, series, results)
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
    _dress_vertical(axes, chart, series, words_of(chart, results)[1])
    _dress_horizontal(axes, chart, xs, place)
    if chart.x == SIZE:
        _part_texts(axes, groups, results, place)
    _label_directly(figure, axes, chart, series, place)
    _write_head(figure, chart, series, results)
    write_foot(figure, results)
    return figure


def _draw_dots(chart: Chart, series: list[Series], results: Results) -> Figure:
    """One corpus size: no line to follow, so a row for each variant, its name left and its figure right."""
    height = max(SIZE_INCHES[1], 2.6 + 0.3 * len(series))
    figure, axes, bottom = framed(results, 0.115 * SIZE_INCHES[1] / height, height)
    top = 1 - 0.14 * SIZE_INCHES[1] / height
    longest = max(len(item.look.label) for item in series)
    left = 0.06 + CHARACTER_WIDTH * max(8, longest)
    axes.set_position((left, bottom, 0.87 - left, top - bottom))
    suffix = "×" if chart.relative else chart.metric.suffix
    for row, item in enumerate(series):
        _draw_row(axes, item, row)
        words: dict[str, Any] = {"transform": axes.get_yaxis_transform(), "va": "center", "fontsize": 9.5}
        words["color"] = darkened(item.look.color)
        axes.text(-0.02, row, item.look.label, ha="right", **words)
        axes.text(1.02, row, f"{format_number(item.middle[0], 3, pad=True)}{suffix}", ha="left", **words)
    axes.set_ylim(len(series) - 0.4, -0.6)
    axes.yaxis.set_major_locator(NullLocator())
    _dress_values(axes.xaxis, chart, series, words_of(chart, results)[1])
    _write_head(figure, chart, series, results, size_text(float(series[0].xs[0])))
    write_foot(figure, results)
    return figure


def _draw_row(axes: Axes, item: Series, row: float) -> None:
    color, middle, low, high = item.look.color, item.middle[0], item.low[0], item.high[0]
    bars: dict[str, Any] = {"fmt": "none", "ecolor": color, "elinewidth": 1.2, "capsize": 3, "zorder": 3}
    axes.errorbar([middle], [row], xerr=[[middle - low], [high - middle]], **bars)
    axes.plot([middle], [row], item.look.marker, color=color, mec="white", mew=0.7, ms=8.5, zorder=4)
    if len(item.raw[0]) > 1:
        single: dict[str, Any] = {
            "color": "white",
            "mec": color,
            "mew": 0.6,
            "ms": 4,
            "ls": "none",
            "zorder": 5,
        }
        axes.plot(item.raw[0], [row] * len(item.raw[0]), ".", **single)


def _draw_panels(chart: Chart, series: list[Series], results: Results) -> Figure:
    """A small panel for each series, in order: its own in colour before all the others in grey."""
    columns = 4 if len(series) <= 12 else 5
    rows = math.ceil(len(series) / columns)
    height = max(SIZE_INCHES[1], 1.6 + 1.55 * rows)
    share = SIZE_INCHES[1] / height
    figure, whole, bottom = framed(results, 0.115 * share, height)
    whole.set_axis_off()
    xs = {x for item in series for x in item.xs}
    place, groups = places_of(chart, xs), comparable(chart, results, xs)
    width, tall = 0.915 / columns, (1 - 0.135 * share - bottom) / rows
    suffix = "×" if chart.relative else chart.metric.suffix
    for index, item in enumerate(series):
        row, column = divmod(index, columns)
        corner = (0.075 + width * column, bottom + tall * (rows - 1 - row))
        axes = figure.add_axes((*corner, width * 0.93, tall - 0.058 * share))
        for other in series:
            if other is not item:
                _draw_line(axes, other, groups, place, 0.0, color=PALE, lw=0.8, zorder=1)
        _draw_series(axes, item, groups, place, 0.0)
        _dress_vertical(axes, chart, series, "")
        _dress_horizontal(axes, chart, xs, place)
        _make_small(
            axes, [place(x) for x in sorted(xs, key=natural)], column == 0, index + columns >= len(series)
        )
        name = wrap(
            f"{item.look.label}  {format_number(item.middle[-1], 3, pad=True)}{suffix}", 150 // columns
        )
        words: dict[str, Any] = {"fontsize": 7.5, "color": darkened(item.look.color), "va": "bottom"}
        axes.text(0, 1.03, "\n".join(name[:2]), transform=axes.transAxes, **words)
    middle = bottom + tall * rows / 2
    figure.text(0.018, middle, words_of(chart, results)[1], rotation=90, va="center", ha="center", fontsize=9)
    figure.text(0.53, bottom - 0.062 * share, axis_words(chart), ha="center", va="center", fontsize=9)
    _write_head(figure, chart, series, results)
    write_foot(figure, results)
    return figure


def _make_small(axes: Axes, places: Sequence[float], leftmost: bool, lowest: bool) -> None:
    """Numbers at the outer panels alone, and only where they do not touch."""
    axes.set_xlabel("")
    axes.tick_params(labelsize=6.5, labelleft=leftmost, labelbottom=lowest)
    words = [label.get_text().partition(" ")[0] for label in axes.get_xticklabels()]
    last = -math.inf
    for index, at in enumerate(places):
        if at - last < 0.17:
            words[index] = ""
        else:
            last = at
    axes.set_xticklabels(words)


def axis_words(chart: Chart) -> str:
    """What the horizontal axis shows."""
    return (
        "static corpus, MB of text (10⁶ bytes, log scale)" if chart.x == SIZE else chart.x.removeprefix(AXES)
    )


def _write_head(figure: Figure, chart: Chart, series: list[Series], results: Results, *more: str) -> None:
    """The title, and below it how to read the picture."""
    share = SIZE_INCHES[1] / figure.get_figheight()
    title = words_of(chart, results)[0]
    figure.text(0.085, 1 - 0.045 * share, title, fontsize=13, fontweight="bold", va="center")
    better = "higher" if chart.relative else chart.metric.better
    words = [f"{better} is better"] if better else []
    if chart.x != SIZE:
        words.append(size_text(max(record.spec.size_mb for record in results.records)))
    text = "  ·  ".join([*words, *more, _runs_text(series)])
    figure.text(0.085, 1 - 0.088 * share, text, fontsize=10, color=GREY, va="center")


def framed(results: Results, bottom: float, height: float = SIZE_INCHES[1]) -> tuple[Figure, Axes, float]:
    """A figure, empty axes, and how high these begin: `bottom` above the lines that `write_foot` writes."""
    figure = new_figure(SIZE_INCHES[0], height)
    lines = [*caption(results), *absences(results)]
    return figure, figure.add_axes((0, 0, 1, 1)), bottom + LINE_HEIGHT * len(lines) * SIZE_INCHES[1] / height


def write_foot(figure: Figure, results: Results) -> None:
    """Where the figures come from, and what the picture cannot show."""
    notes = absences(results)
    lines = [*caption(results), *notes]
    share = SIZE_INCHES[1] / figure.get_figheight()
    for index, line in enumerate(lines):
        y = (0.020 + LINE_HEIGHT * (len(lines) - 1 - index)) * share
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
    _draw_line(axes, item, groups, place, shift, color=color, lw=1.6, zorder=2)
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


def _draw_line(
    axes: Axes, item: Series, groups: list[list[X]], place: Places, shift: float, **how: Any
) -> None:
    """A place without a figure leaves a gap: nothing is drawn through what was not measured."""
    middles = dict(zip(item.xs, item.middle, strict=True))
    for group in groups:
        joined = [x for x in group if place(x) >= 0]
        line = [middles.get(x, math.nan) for x in joined]
        axes.plot([place(x) + shift for x in joined], line, item.look.line, **how)


def _dress_vertical(axes: Axes, chart: Chart, series: list[Series], words: str) -> None:
    _dress_values(axes.yaxis, chart, series, words)


def _dress_values(axis: Axis, chart: Chart, series: list[Series], words: str) -> None:
    """The axis of the figures, which stands upright but where there is one corpus size."""
    axes, is_upright = axis.axes, isinstance(axis, YAxis)
    set_limits = axes.set_ylim if is_upright else axes.set_xlim
    axis.set_label_text(words)
    axes.grid(axis="y" if is_upright else "x", color=PALE, lw=0.6, zorder=0)
    axes.set_axisbelow(True)
    lowest = min(min(item.low) for item in series)
    highest = max(max(item.high) for item in series)
    sign = "×" if chart.relative else ""
    written = FuncFormatter(lambda value, _: format_number(value) + sign)
    axis.set_major_formatter(written)
    if not _is_log(chart) or lowest <= 0:
        set_limits(0, highest * 1.08)
        return
    (axes.set_yscale if is_upright else axes.set_xscale)("log")
    set_limits(min(lowest, 1.0) / 1.15 if chart.relative else lowest / 1.35, highest * 1.35)
    # Few decades need more ticks than powers of ten to be read at all.
    steps = (1.0, 2.0, 5.0) if highest / lowest < 2000 else (1.0,)
    axis.set_major_locator(LogLocator(base=10, subs=steps))
    axis.set_major_formatter(written)
    axis.set_minor_formatter(NullFormatter())
    if chart.relative:
        (axes.axhline if is_upright else axes.axvline)(1.0, color=GREY, lw=0.9, ls=":", zorder=1)


def _dress_horizontal(axes: Axes, chart: Chart, found: Iterable[X], place: Places) -> None:
    xs = sorted(found, key=natural)
    axes.xaxis.set_major_locator(FixedLocator([place(x) for x in xs]))
    axes.xaxis.set_minor_locator(NullLocator())
    apart = place(xs[0]) < 0  # 0 MB
    names = [f"{x:g}" if isinstance(x, float) else str(x) for x in xs]
    axes.set_xticklabels(["0 (no static\ncache)", *names[1:]] if apart else names)
    axes.set_xlabel(axis_words(chart))
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
