"""One variant against the one it changes: measured in turn, ratios with their spread, a chart, a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from draft_ladder.base.errors import InputError
from draft_ladder.base.variants import Variant
from draft_ladder.bench.config import Experiment
from draft_ladder.bench.stats import Results, SummaryRow, run_rows, summarize
from draft_ladder.report.caption import caption
from draft_ladder.report.charts import RC, horizontal_places, save
from draft_ladder.report.stats_table import TextTable, figure

# Metric -> how its chart and its sentence call it. Lower is better in all.
METRICS = {
    "draft_latency_us": "draft latency",
    "load_time_s": "load time",
    "peak_rss_mb": "peak memory",
    "draft_call_p999_us": "99.9th percentile of a draft call",
    "draft_call_max_us": "slowest draft call",
}


@dataclass(frozen=True)
class Ratio:
    """How many times better the variant is at one size: middle of the medians, ends of the ranges."""

    metric: str
    size_mb: float
    versus: float
    variant: float
    ratio: float
    low: float
    high: float
    overlap: bool


def counterpart(variant: Variant) -> str:
    """What the variant is measured against. Raises InputError for one that changes nothing."""
    if variant.versus is None:
        raise InputError(
            f"variant {variant.name}", "its variant.toml names no `versus`", "name one that changes another"
        )
    return variant.versus


def experiment_for(base: Experiment, variant: Variant) -> Experiment:
    """The base experiment with the variant and its counterpart alone, and a histogram pass for the tail.

    Raises InputError for a variant that changes nothing against another.
    """
    versus = counterpart(variant)
    for key in ("n_ctx", "n_draft", "page_cache"):
        if len(getattr(base, key)) > 1:
            raise InputError(key, "has several values, an ablation compares at one", f"give {key} one value")
    if axis := next((name for name, values in base.axes.items() if len(values) > 1), None):
        raise InputError(f"axes.{axis}", "has several values, an ablation compares at one", "give it one")
    changes: dict[str, Any] = {
        # An experiment is a folder of results and of charts: those of another text are not to meet there.
        "name": f"{base.name}-{variant.name}",
        "variants": (versus, variant.name),
        "histogram_repeats": max(1, base.histogram_repeats),
        "chunk_repeats": 0,
    }
    return Experiment.model_validate({**base.model_dump(), **changes})


def ratios(results: Results, variant: str, versus: str) -> list[Ratio]:
    """Every metric and size that both have."""
    rows = {(row.variant, row.metric, row.size_mb): row for row in summarize(run_rows(results.records))}
    sizes = sorted({size for name, _, size in rows if name == variant})
    found = []
    for metric in METRICS:
        for size in sizes:
            a, b = rows.get((versus, metric, size)), rows.get((variant, metric, size))
            if a is not None and b is not None and (one := _ratio(a, b)) is not None:
                found.append(one)
    if not found:
        raise InputError(
            results.folder, f"has no figures of both {versus} and {variant}", "run the experiment again"
        )
    return found


def _ratio(a: SummaryRow, b: SummaryRow) -> Ratio | None:
    if not (a.median and b.median and a.min and b.min and a.max and b.max):
        return None
    return Ratio(
        a.metric,
        a.size_mb,
        float(a.median),
        float(b.median),
        a.median / b.median,
        a.min / b.max,
        a.max / b.min,
        a.min <= b.max and b.min <= a.max,
    )


def sentence(found: Sequence[Ratio], variant: dict[str, Any], names: tuple[str, str]) -> str:
    """What the change is and what it did, metric by metric."""
    name, versus = names
    parts = []
    for metric, words in METRICS.items():
        own = [one for one in found if one.metric == metric]
        if own:
            parts.append(f"{words} {_effect(own)}")
    return f"{name} against {versus}: {variant.get('changes', '')}. " + "; ".join(parts) + "."


def _effect(own: Sequence[Ratio]) -> str:
    low, high = min(one.ratio for one in own), max(one.ratio for one in own)
    if f"{low:.2f}" == f"{high:.2f}" == "1.00":
        return "within 1 % of it"
    if low >= 1:
        size = f"{_span(low, high)} times better"
    elif high <= 1:
        size = f"{_span(1 / high, 1 / low)} times worse"
    else:
        size = f"from {1 / low:.2f} times worse to {high:.2f} times better"
    apart = [f"{one.size_mb:g}" for one in own if not one.overlap]
    if len(apart) == len(own):
        ranges = "ranges apart at every size"
    elif apart:
        ranges = f"ranges apart at {', '.join(apart)} MB only"
    else:
        ranges = "ranges overlap at every size"
    runs = "" if own[0].low != own[0].high else ", one run each"
    return f"{size} ({ranges}{runs})"


def _span(low: float, high: float) -> str:
    ends = f"{low:.2f}", f"{high:.2f}"
    return ends[0] if ends[0] == ends[1] else " to ".join(ends)


def as_table(found: Sequence[Ratio], names: tuple[str, str]) -> TextTable:
    """A row per metric and size."""
    rows = [
        (
            METRICS[one.metric],
            f"{one.size_mb:g}",
            figure(one.versus),
            figure(one.variant),
            f"{one.ratio:.3f}",
            f"{one.low:.3f} to {one.high:.3f}",
            "overlap" if one.overlap else "apart",
        )
        for one in found
    ]
    columns = ("metric", "MB", names[1], names[0], "times better", "spread", "ranges")
    return TextTable(f"{names[0]} against {names[1]}", columns, rows)


def write_chart(found: Sequence[Ratio], results: Results, names: tuple[str, str], folder: Path) -> list[Path]:
    """The ratios and their spread over the sizes, a panel per metric; SVG and PNG."""
    folder.mkdir(parents=True, exist_ok=True)
    metrics = [metric for metric in METRICS if any(one.metric == metric for one in found)]
    with mpl.rc_context(RC):
        return save(_draw(found, metrics, results, names), folder, names[0])


def _draw(found: Sequence[Ratio], metrics: list[str], results: Results, names: tuple[str, str]) -> Figure:
    drawing = Figure(figsize=(3.2 * len(metrics), 4.6))
    FigureCanvasAgg(drawing)
    color = str(results.variants.get(names[0], {}).get("color", "#555555"))
    left, width = 0.05, 0.94 / len(metrics)
    for index, metric in enumerate(metrics):
        axes = drawing.add_axes((left + index * width, 0.27, width * 0.8, 0.52))
        _draw_panel(axes, [one for one in found if one.metric == metric], color)
        axes.set_title(METRICS[metric], fontsize=9)
    drawing.text(left, 0.93, f"{names[0]}: times better than {names[1]}", fontsize=12, fontweight="bold")
    lines = [
        f"above 1 is better; bars from lowest to highest ratio of single runs  ·  {_change(results, names)}"
    ]
    for index, line in enumerate([*lines, *caption(results)]):
        drawing.text(0.01, 0.12 - 0.035 * index, line, fontsize=6, color="#555555")
    return drawing


def _change(results: Results, names: tuple[str, str]) -> str:
    return str(results.variants.get(names[0], {}).get("changes", ""))


def _draw_panel(axes: Axes, own: Sequence[Ratio], color: str) -> None:
    place = horizontal_places([one.size_mb for one in own])
    xs = [place(one.size_mb) for one in own]
    middles = [one.ratio for one in own]
    below = [one.ratio - one.low for one in own]
    above = [one.high - one.ratio for one in own]
    axes.axhline(1.0, color="#555555", lw=0.9, ls=":")
    axes.errorbar(xs, middles, yerr=[below, above], fmt="o-", color=color, capsize=3, lw=1.4, ms=5)
    axes.xaxis.set_major_locator(FixedLocator(xs))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticklabels([f"{one.size_mb:g}" for one in own], fontsize=7)
    axes.set_xlabel("corpus, MB", fontsize=8)
    axes.tick_params(axis="y", labelsize=8)
    lowest, highest = min(0.95, *(one.low for one in own)), max(1.05, *(one.high for one in own))
    margin = (highest - lowest) * 0.08
    axes.set_ylim(lowest - margin, highest + margin)
