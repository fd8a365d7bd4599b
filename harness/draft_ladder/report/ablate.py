"""One variant against the one it changes: measured in turn, ratios with their spread, a sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from draft_ladder.base.errors import InputError
from draft_ladder.base.variants import Variant
from draft_ladder.bench.config import Experiment, plain
from draft_ladder.bench.metrics import BY_NAME, PER_CALL, Metric, own_timing, shown_in
from draft_ladder.bench.records import SETTINGS
from draft_ladder.bench.settings import AXES, Settings, names_of
from draft_ladder.bench.stats import (
    Cell,
    Results,
    RunRow,
    SummaryRow,
    by_cell,
    refuse_marked,
    run_rows,
    summarize,
)
from draft_ladder.report.compare import ranges_text
from draft_ladder.report.pairs import MIN_PAIRS, Interval, Verdict, paired
from draft_ladder.report.style import TextTable, format_number


@dataclass(frozen=True)
class Ratio:
    """How many times better the variant is at one size: middle of the medians, ends of the ranges.

    `n_pairs` rounds measured both; `interval_low`, `interval_high` and `verdict` are by `report.pairs`.
    """

    metric: str
    size_mb: float
    versus: float
    variant: float
    ratio: float
    low: float
    high: float
    ranges: str
    n_pairs: int
    interval_low: float | None
    interval_high: float | None
    verdict: Verdict

    @property
    def interval(self) -> Interval:
        """Where the ratio lies."""
        return Interval(self.n_pairs, self.interval_low, self.interval_high)


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


def ratios(results: Results, names: tuple[str, str], chosen: Mapping[str, Any] | None = None) -> list[Ratio]:
    """Every metric and size that both of `names` (variant, versus) have, at the `chosen` settings.

    DraftsDifferError where either drafts differently; InputError where they share no figure, or where what is
    chosen leaves several values of a setting.
    """
    refuse_marked(results, names)
    wanted = _settings_of(chosen or {})
    rows = run_rows(results.records)
    runs = _by_repeat(rows)
    cells = {
        cell: figures
        for cell, figures in by_cell(summarize(rows)).items()
        if cell.variant in names and wanted.agrees(cell.settings)
    }
    pairs = [
        (cell, figures, other, others)
        for cell, figures in cells.items()
        for other, others in cells.items()
        if (cell.variant, other.variant, cell.size_mb) == (*names, other.size_mb)
        and cell.settings.agrees(other.settings)
    ]
    for name in names_of(cell.settings for cell in cells):
        if len({cell.settings[name] for cell in cells if name in cell.settings}) > 1:
            raise InputError(results.folder, f"has several values of {name}", f"give one: --set {name}=VALUE")
    found = [
        _ratio(
            metric,
            cell.size_mb,
            (others[metric.name], figures[metric.name]),
            (runs[other, metric.name], runs[cell, metric.name]),
        )
        for metric in shown_in("ablate").values()
        for cell, figures, other, others in pairs
        if all(metric.name in own and own[metric.name].min for own in (figures, others))
    ]
    if not found:
        raise InputError(
            results.folder, f"has no figures of both {names[1]} and {names[0]}", "run the experiment again"
        )
    return found


def _settings_of(chosen: Mapping[str, Any]) -> Settings:
    """What --set chooses among records; InputError for a key that is no setting, or several values of one."""
    for key, value in chosen.items():
        if not (key in SETTINGS or key.startswith(AXES)) or isinstance(value, list | dict):
            known = ", ".join([*SETTINGS, f"{AXES}NAME"])
            raise InputError(f"--set {key}", "chooses no records", f"give one value of {known}")
    return Settings({key: plain(value) if key.startswith(AXES) else value for key, value in chosen.items()})


def _by_repeat(rows: Sequence[RunRow]) -> dict[tuple[Cell, str], dict[int, float]]:
    """Every figure of a metric's own timing mode by the round it was measured in."""
    found: dict[tuple[Cell, str], dict[int, float]] = {}
    for row in rows:
        if row.timing == own_timing(row.metric) and row.value:
            cell = Cell(row.variant, row.settings, row.size_mb)
            found.setdefault((cell, row.metric), {})[row.repeat] = float(row.value)
    return found


def _ratio(
    metric: Metric,
    size_mb: float,
    rows: tuple[SummaryRow, SummaryRow],
    runs: tuple[dict[int, float], dict[int, float]],
) -> Ratio:
    """Both pairs are (versus, variant)."""
    versus, variant = rows
    middles = float(versus.median or 0), float(variant.median or 0)
    ends = metric.gain(versus.min or 0, variant.max or 0), metric.gain(versus.max or 0, variant.min or 0)
    rounds = sorted(runs[0].keys() & runs[1].keys())
    interval = paired([metric.gain(runs[0][index], runs[1][index]) for index in rounds])
    return Ratio(
        metric.name,
        size_mb,
        *middles,
        metric.gain(*middles),
        min(ends),
        max(ends),
        ranges_text(versus, variant),
        interval.n_pairs,
        interval.low,
        interval.high,
        interval.verdict,
    )


def too_wide(found: Sequence[Ratio], width: float) -> list[Ratio]:
    """What further rounds would tell better: metrics measured in every round whose interval is not narrow."""
    return [
        one
        for one in found
        if BY_NAME[one.metric].own_timing == PER_CALL and not one.interval.is_narrow(width)
    ]


def width_line(found: Sequence[Ratio], width: float) -> str:
    """Which intervals are still wide, empty where none is."""
    wide = too_wide(found, width)
    parts = []
    for name in dict.fromkeys(one.metric for one in wide):
        own = [one for one in wide if one.metric == name]
        sizes = ", ".join(f"{one.size_mb:g}" for one in own)
        parts.append(f"{BY_NAME[name].words} at {sizes} MB ({min(one.n_pairs for one in own)} pairs of runs)")
    return f"Intervals not within {width:.0%}: {'; '.join(parts)}." if parts else ""


def sentence(found: Sequence[Ratio], variant: dict[str, Any], names: tuple[str, str]) -> str:
    """What the change is and what it did, metric by metric."""
    name, versus = names
    parts = []
    for metric in shown_in("ablate").values():
        own = [one for one in found if one.metric == metric.name]
        if own:
            parts.append(f"{metric.words} {_effect(own)}")
    return f"{name} against {versus}: {variant.get('changes', '')}. " + "; ".join(parts) + "."


def _effect(own: Sequence[Ratio]) -> str:
    fewest = min(one.n_pairs for one in own)
    if fewest < MIN_PAIRS:
        span = _span([one.ratio for one in own])
        return f"{span} times, not judged: {fewest} of the {MIN_PAIRS} pairs of runs that takes"
    parts = []
    for verdict in ("better", "worse"):
        group = [one for one in own if one.verdict == verdict]
        sizes = [one.ratio if verdict == "better" else 1 / one.ratio for one in group]
        if group:
            much = f"{_span(sizes)} times" if max(sizes) >= 1.005 else "less than 1 %"
            parts.append(f"{much} {verdict}{_at(group, own)}")
    even = [one for one in own if one.verdict == "not told apart"]
    if even:
        low, high = (
            f(getattr(one, f"interval_{end}") for one in even) for f, end in ((min, "low"), (max, "high"))
        )
        parts.append(f"not told apart{_at(even, own)} (between {low:.3f} and {high:.3f})")
    return ", ".join(parts)


def _at(some: Sequence[Ratio], own: Sequence[Ratio]) -> str:
    """At which sizes, where it is not at all."""
    return "" if len(some) == len(own) else f" at {', '.join(f'{one.size_mb:g}' for one in some)} MB"


def _span(ratios: Sequence[float]) -> str:
    ends = f"{min(ratios):.2f}", f"{max(ratios):.2f}"
    return ends[0] if ends[0] == ends[1] else " to ".join(ends)


def as_table(found: Sequence[Ratio], names: tuple[str, str]) -> TextTable:
    """A row per metric and size."""
    rows = [
        (
            BY_NAME[one.metric].words,
            f"{one.size_mb:g}",
            format_number(one.versus),
            format_number(one.variant),
            f"{one.ratio:.3f}",
            f"{one.low:.3f} to {one.high:.3f}",
            str(one.interval),
            one.verdict,
        )
        for one in found
    ]
    columns = ("metric", "MB", names[1], names[0], "times better", "spread", "95 % interval", "verdict")
    return TextTable(f"{names[0]} against {names[1]}", columns, rows)
