"""What a chart shows: which metric against which setting, and every variant's points with their looks."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from draft_ladder.bench.metrics import BY_NAME, Metric
from draft_ladder.bench.settings import Settings, Value, natural, telling
from draft_ladder.bench.stats import RunRow
from draft_ladder.report.style import BROKEN_LINES, GREY, SOLID_LINES, format_number, shade

SIZE = "size_mb"
X = Value | float
Variants = Mapping[str, Mapping[str, Any]]
Subject = tuple[str, Settings]  # a variant at its settings
Figures = dict[X, list[float]]


@dataclass(frozen=True)
class Chart:
    """One picture: a metric against corpus size or any other setting (`x`: its key in a config).

    `relative` charts how many times better each figure is than that of the lowest rung measured.
    """

    name: str
    metric_name: str
    x: str = SIZE
    relative: bool = False

    @property
    def metric(self) -> Metric:
        """The registry's entry."""
        return BY_NAME[self.metric_name]


@dataclass(frozen=True)
class Look:
    """How a series is drawn; no two series of a chart look alike."""

    label: str
    color: str
    marker: str
    line: str


@dataclass(frozen=True)
class Series:
    """One variant's points: `raw` holds every single figure at each of `xs`, rising."""

    variant: str
    settings: Settings
    look: Look
    xs: tuple[X, ...]
    raw: tuple[tuple[float, ...], ...]

    @property
    def low(self) -> list[float]:
        """The lowest figure at each place."""
        return [found[0] for found in self.raw]

    @property
    def middle(self) -> list[float]:
        """The median at each place."""
        return [statistics.median(found) for found in self.raw]

    @property
    def high(self) -> list[float]:
        """The highest figure at each place."""
        return [found[-1] for found in self.raw]


def collect(chart: Chart, rows: Sequence[RunRow], variants: Variants) -> list[Series]:
    """The chart's series in ladder order; a place without a figure has no point.

    Against another setting than size, the largest size is charted; a single value gives nothing to draw.
    """
    own = [
        row
        for row in rows
        if (row.metric, row.timing) == (chart.metric_name, chart.metric.own_timing) and row.value is not None
    ]
    if chart.x != SIZE:
        largest = max((row.size_mb for row in own), default=0.0)
        own = [row for row in own if row.size_mb == largest and chart.x in row.settings]
        if len({row.settings[chart.x] for row in own}) < 2:
            return []
    figures: dict[Subject, Figures] = {}
    for row in own:
        place: X = row.size_mb if chart.x == SIZE else row.settings[chart.x]
        others = row.settings.of_names(row.settings.keys() - {chart.x})
        figures.setdefault((row.variant, others), {}).setdefault(place, []).append(float(row.value or 0))
    if chart.relative:
        figures = _relative(chart.metric, figures, baseline(variants))
    looks = looks_of(figures, variants)
    return [_series(subject, looks[subject], figures[subject]) for subject in looks if figures[subject]]


def _series(subject: Subject, look: Look, figures: Figures) -> Series:
    xs = sorted(figures, key=natural)
    return Series(*subject, look, tuple(xs), tuple(tuple(sorted(figures[x])) for x in xs))


def baseline(variants: Variants) -> str | None:
    """The lowest rung of an experiment, by name."""
    rungs = [(style["rung"], name) for name, style in variants.items() if style.get("rung") is not None]
    return min(rungs)[1] if rungs else None


def _relative(metric: Metric, figures: dict[Subject, Figures], base: str | None) -> dict[Subject, Figures]:
    """How many times better each figure is than the baseline's median at the same settings."""
    made: dict[Subject, Figures] = {}
    for (variant, settings), own in figures.items():
        before = next(
            (found for (name, other), found in figures.items() if name == base and settings.agrees(other)),
            None,
        )
        if before is not None and variant != base:
            made[variant, settings] = {
                x: [metric.gain(statistics.median(before[x]), value) for value in found]
                for x, found in own.items()
                if x in before
            }
    return made


def looks_of(subjects: Iterable[Subject], variants: Variants) -> dict[Subject, Look]:
    """Every series' look, in ladder order: the variant's own, paler or of another line at others."""
    order = {name: index for index, name in enumerate(variants)}
    ordered = sorted(subjects, key=lambda one: (order.get(one[0], len(order)), one[0], one[1].order))
    names = telling(settings for _, settings in ordered)
    found = {}
    for subject in ordered:
        siblings = [other for other in ordered if other[0] == subject[0]]
        found[subject] = _look(subject, siblings.index(subject), len(siblings), variants, names)
    return found


def _look(subject: Subject, index: int, total: int, variants: Variants, names: Collection[str]) -> Look:
    variant, settings = subject
    style = variants.get(variant, {})
    lines = SOLID_LINES if style.get("rung") is not None else BROKEN_LINES
    text, values = str(style.get("label", variant)), settings.text(names)
    color = shade(str(style.get("color", GREY)), index, total)
    return Look(
        f"{text} [{values}]" if values else text,
        color,
        str(style.get("marker", "o")),
        lines[index % len(lines)],
    )


def size_text(size_mb: float) -> str:
    """A corpus size in words."""
    return f"{format_number(size_mb, 6)} MB of corpus" if size_mb else "no static cache"
