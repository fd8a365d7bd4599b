"""Two results folders side by side: how many times better the second is, cell by cell.

A folder is results/<machine>/<experiment>, now or as it was in a commit: `REV:FOLDER`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from draft_ladder.base.commits import files_of
from draft_ladder.base.errors import InputError
from draft_ladder.bench.metrics import Metric, own_timing, shown_in
from draft_ladder.bench.records import RunRecord, differing_drafts
from draft_ladder.bench.settings import label, numeric_order
from draft_ladder.bench.stats import Results, SummaryRow, by_cell, load_results, run_rows, summarize
from draft_ladder.report.alike import notes_on_places, unlike_places
from draft_ladder.report.caption import notes_on, telling_of
from draft_ladder.report.pairs import Verdict, unpaired
from draft_ladder.report.style import TextTable, format_number


@dataclass(frozen=True)
class Cell:
    """One metric of one variant at its settings and one corpus size in both runs.

    `ratio`: how many times better B's median is than A's. `variant` is a label. Interval and verdict are
    by `report.pairs`.
    """

    variant: str
    size_mb: float
    metric: str
    unit: str
    a: float
    b: float
    ratio: float
    a_range: tuple[float, float]
    b_range: tuple[float, float]
    ranges: str
    n_runs: int  # of the one that has fewer
    interval_low: float | None
    interval_high: float | None
    verdict: Verdict


@dataclass(frozen=True)
class Comparison:
    """All cells that both runs have; `differences` are the ways in which the runs are unlike.

    `notes` are worth knowing, though they make no figure incomparable.
    """

    cells: list[Cell]
    differences: list[str]
    notes: list[str]
    only_a: list[str]
    only_b: list[str]


@contextmanager
def opened(name: str) -> Iterator[Results]:
    """The results that `name` means: a folder, or REV:FOLDER for the folder in a commit."""
    revision, colon, path = name.partition(":")
    if not colon or Path(name).exists():
        yield load_results(Path(name))
        return
    remedy = "give FOLDER or REV:FOLDER as `git archive REV FOLDER` takes it"
    with files_of(revision, path, remedy=remedy) as folder:
        yield load_results(folder / path)


def compare(a: Results, b: Results, *, force: bool = False) -> Comparison:
    """Compare two results. Raises InputError for unlike settings, inputs or machines unless `force`."""
    differences = unlikeness(a, b)
    if differences and not force:
        raise InputError(
            f"{a.folder.name} and {b.folder.name}",
            f"are not alike: {'; '.join(differences)}",
            "compare like with like, or give --force to compare all the same",
        )
    names = {*telling_of(a), *telling_of(b)}
    cells_a, cells_b = _by_label(a, names), _by_label(b, names)
    runs_a, runs_b = _runs_by_label(a, names), _runs_by_label(b, names)
    cells = [
        cell
        for key, figures in cells_a.items()
        for metric in shown_in("compare").values()
        if key in cells_b
        and (cell := _cell(key, metric, (figures, cells_b[key]), (runs_a, runs_b))) is not None
    ]
    only_a, only_b = (
        [f"{variant} at {size:g} MB" for variant, size in one if (variant, size) not in other]
        for one, other in ((cells_a, cells_b), (cells_b, cells_a))
    )
    return Comparison(cells, differences, [*flag_notes([a, b]), *notes_on([a, b])], only_a, only_b)


def unlikeness(a: Results, b: Results) -> list[str]:
    """What makes the figures incomparable: machine, compiler, settings, texts, tokenizer, drafts."""
    found = unlike_places(a, b)
    for name, values_a, values_b in (
        (name, _values(a, name), _values(b, name)) for name in ("n_ctx", "n_draft", "page_cache", "cpu")
    ):
        if values_a != values_b:
            found.append(f"{name} is {_listed(values_a)} and {_listed(values_b)}")
    if _values(a, "tokens_sha256") != _values(b, "tokens_sha256"):
        found.append("they replay different tokens")
    pair = differing_drafts([*a.records, *b.records])
    if pair is not None:
        found.append(f"they draft differently: {pair[0].spec.describe()} and {pair[1].spec.describe()}")
    corpora_a, corpora_b = _corpora(a), _corpora(b)
    sizes = sorted(set(corpora_a) & set(corpora_b))
    unlike = [f"{size:g}" for size in sizes if corpora_a[size] != corpora_b[size]]
    if unlike:
        found.append(
            f"the corpus of {', '.join(unlike)} MB is another text or came through another tokenizer"
        )
    return found


def flag_notes(folders: Sequence[Results]) -> list[str]:
    """A line for each folder that was built with other compiler flags than the first, or run elsewise."""
    first, *others = folders
    flags = [line for other in others if (line := _flag_note(first, other)) is not None]
    return flags + notes_on_places(folders)


def _flag_note(a: Results, b: Results) -> str | None:
    flags_a, flags_b = _built(a, "cxx_flags"), _built(b, "cxx_flags")
    if not flags_a or not flags_b or flags_a == flags_b:
        return None
    words_a, words_b = ({word for flags in found for word in flags.split()} for found in (flags_a, flags_b))
    parts = [
        f"{results.folder.name} with {' '.join(sorted(more))}"
        for results, more in ((a, words_a - words_b), (b, words_b - words_a))
        if more
    ]
    alike = f"{a.folder.name} and {b.folder.name} were built with other compiler flags"
    return f"{alike}: {', '.join(parts)}" if parts else f"{alike}: the same in another order"


def _built(results: Results, key: str) -> set[str]:
    """What the modules of all records say of their build."""
    builds = [(record.measured or {}).get("build") or {} for record in results.records]
    return {str(build[key]) for build in builds if build.get(key) is not None}


def _values(results: Results, name: str) -> set[Any]:
    return {getattr(record.spec, name) for record in results.records}


def _listed(values: set[Any]) -> str:
    return "/".join(sorted(map(str, values), key=numeric_order)) or "nothing"


def _corpora(results: Results) -> dict[float, tuple[Any, ...]]:
    def identity(record: RunRecord) -> tuple[Any, ...]:
        return record.spec.corpus.sha256, record.spec.tokenizer.sha256

    return {record.spec.size_mb: identity(record) for record in results.records}


def _by_label(results: Results, names: Collection[str]) -> dict[tuple[str, float], dict[str, SummaryRow]]:
    """Figures by what tells cells apart in either run: under --force the other settings may differ."""
    cells = by_cell(summarize(run_rows(results.records)))
    return {(label(one.variant, one.settings, names), one.size_mb): found for one, found in cells.items()}


Runs = dict[tuple[str, float, str], list[float]]


def _runs_by_label(results: Results, names: Collection[str]) -> Runs:
    """The single runs behind those figures."""
    found: Runs = {}
    for row in run_rows(results.records):
        if row.timing == own_timing(row.metric) and row.value:
            key = label(row.variant, row.settings, names), row.size_mb, row.metric
            found.setdefault(key, []).append(float(row.value))
    return found


def _cell(
    key: tuple[str, float],
    metric: Metric,
    figures: tuple[dict[str, SummaryRow], dict[str, SummaryRow]],
    runs: tuple[Runs, Runs],
) -> Cell | None:
    """Both pairs are (A's, B's)."""
    a, b = (own.get(metric.name) for own in figures)
    if a is None or b is None or not (a.median and b.median):
        return None
    ranges = (float(a.min or 0), float(a.max or 0)), (float(b.min or 0), float(b.max or 0))
    ratio = metric.gain(a.median, b.median)
    medians = float(a.median), float(b.median)
    series = (own.get((*key, metric.name), []) for own in runs)
    interval = unpaired(*series, higher_is_better=metric.better == "higher")
    return Cell(
        *key,
        metric.name,
        metric.unit,
        *medians,
        ratio,
        *ranges,
        ranges_text(a, b),
        interval.n_pairs,
        interval.low,
        interval.high,
        interval.verdict,
    )


def ranges_text(a: SummaryRow, b: SummaryRow) -> str:
    """How the ranges lie; single figures have none."""
    if (a.min, a.max) == (b.min, b.max):
        return "equal"
    if a.n == b.n == 1:
        return "one run each"
    meet = (a.min or 0) <= (b.max or 0) and (b.min or 0) <= (a.max or 0)
    return "overlap" if meet else "apart"


def as_table(comparison: Comparison) -> TextTable:
    """A row per cell."""
    rows = [
        (
            cell.variant,
            f"{cell.size_mb:g}",
            cell.metric,
            format_number(cell.a),
            format_number(cell.b),
            f"{cell.ratio:.3f}",
            cell.ranges,
            cell.verdict,
        )
        for cell in comparison.cells
    ]
    columns = ("variant", "MB", "metric", "A", "B", "A/B", "ranges", "B is")
    return TextTable("A over B: above 1 where B's median is the lower", columns, rows)
