"""Real text beside the synthetic language that stands in for it: `ladder corpus compare`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from draft_ladder.base.errors import InputError
from draft_ladder.base.manifests import write_atomic
from draft_ladder.base.variants import find
from draft_ladder.bench import environment
from draft_ladder.bench.config import Experiment
from draft_ladder.bench.places import write_json
from draft_ladder.bench.prepare import Note, Preparation
from draft_ladder.data.synthetic import SyntheticConfig, SyntheticSource
from draft_ladder.report.style import TextTable, as_markdown
from draft_ladder.studies.corpus_stats import (
    N_CTX,
    N_DRAFT,
    REPLAY_VARIANT,
    CorpusStats,
    corpus_stats,
    lookup,
)

SCHEMA = 1
RECORD_NAME, PAGE_NAME = "corpora.json", "corpora.md"

Unit = Literal["points", "percent"]
LIMITS: dict[Unit, float] = {"points": 5.0, "percent": 20.0}


@dataclass(frozen=True)
class Figure:
    """One statistic that is judged: a share by the difference in percentage points, a count by the ratio."""

    label: str
    key: str
    unit: Unit
    form: str


FIGURES = (
    Figure("bigrams with one successor", "single_share", "points", "{:.2%}"),
    Figure("bigrams with at most 100 successors", "at_most_100_share", "points", "{:.2%}"),
    Figure("distinct bigrams per million tokens", "bigrams_per_million", "percent", "{:,.0f}"),
    Figure("distinct successors per million tokens", "pairs_per_million", "percent", "{:,.0f}"),
    Figure("hit rate", "replay.hit_rate", "points", "{:.2%}"),
    Figure("acceptance", "replay.acceptance", "points", "{:.2%}"),
)


@dataclass(frozen=True)
class Pair:
    """Both corpora of one size."""

    size_mb: float
    real_label: str
    real: CorpusStats
    synthetic: CorpusStats


def difference(figure: Figure, pair: Pair) -> float | None:
    """Synthetic minus real in percentage points, or in percent of real; None where either is unknown."""
    real, synthetic = lookup(pair.real, figure.key), lookup(pair.synthetic, figure.key)
    if real is None or synthetic is None or (figure.unit == "percent" and not real):
        return None
    return 100 * float(synthetic - real) / (1.0 if figure.unit == "points" else real)


def compare_corpora(
    experiment: Experiment, cache: Path, text_dir: Path | None = None, seed: int = 1, note: Note = print
) -> list[Pair]:
    """Statistics of the experiment's corpora and of synthetic ones of the same sizes, each with one replay
    of the text that belongs to it.

    Raises InputError where the experiment's corpus is synthetic itself, and whatever preparing it raises.
    """
    if isinstance(experiment.corpus, SyntheticConfig):
        raise InputError("corpus", "is synthetic", "name a config whose corpus is real text")
    real = _statistics(Preparation(experiment, cache, text_dir=text_dir, note=note), note)
    sizes = tuple(size for size, _, _ in real)
    corpus = SyntheticConfig(source="synthetic", seed=seed)
    language = experiment.model_copy(update={"corpus": corpus, "sizes_mb": sizes})
    synthetic = _statistics(Preparation(language, cache, note=note), note)
    return [
        Pair(size, label, stats, other)
        for (size, label, stats), (_, _, other) in zip(real, synthetic, strict=True)
    ]


def _statistics(preparation: Preparation, note: Note) -> list[tuple[float, str, CorpusStats]]:
    variant = find(REPLAY_VARIANT)
    found = []
    for size, corpus, source in preparation.corpora():
        if isinstance(source, SyntheticSource) and preparation.source is not source:
            note(f"{size:g} MB: there is no real text of that size")
            continue
        tokens = preparation.tokens(corpus.path, corpus.sha256)
        static = preparation.statics(tokens, [variant])[variant.static_format]
        replayed = preparation.replayed(source)
        note(f"{corpus.label}, {size:g} MB: {tokens.n_tokens:,} tokens")
        found.append((size, corpus.label, corpus_stats(tokens.path, replayed.tokens, static.path)))
    return found


# --- printing ---------------------------------------------------------------------------------------------


def table(pairs: Sequence[Pair]) -> TextTable:
    """Real, synthetic and the difference of each judged figure at each size."""
    rows = []
    for figure in FIGURES:
        for pair in pairs:
            values = [lookup(stats, figure.key) for stats in (pair.real, pair.synthetic)]
            shown = ["-" if value is None else figure.form.format(value) for value in values]
            found = difference(figure, pair)
            unit = "points" if figure.unit == "points" else "%"
            by = "-" if found is None else f"{found:+.2f} {unit}"
            rows.append((figure.label, f"{pair.size_mb:g}", *shown, by, verdict(figure, found)))
    limits = f"limit {LIMITS['points']:g} points / {LIMITS['percent']:g} %"
    columns = ("", "MB", "real", "synthetic", "difference", limits)
    return TextTable(pairs[0].real_label if pairs else "", columns, rows)


def verdict(figure: Figure, found: float | None) -> str:
    """Whether a difference keeps its limit."""
    if found is None:
        return "unknown"
    return "within" if abs(found) <= LIMITS[figure.unit] else "OUTSIDE"


def page(pairs: Sequence[Pair], seed: int) -> str:
    """The comparison as Markdown."""
    sizes = ", ".join(f"{pair.size_mb:g}" for pair in pairs)
    return "\n".join(
        [
            "# Real text beside the synthetic language",
            "",
            f"{pairs[0].real_label}, and the synthetic language (seed {seed}) at {sizes} MB; hit rate and",
            f"acceptance from one replay of `{REPLAY_VARIANT}` (n_ctx {N_CTX}, n_draft {N_DRAFT}), "
            "each of its own text.",
            "",
            as_markdown(table(pairs)),
            "",
        ]
    )


def as_record(pairs: Sequence[Pair], seed: int) -> dict[str, Any]:
    """All figures, for JSON."""
    return {
        "schema": SCHEMA,
        "seed": seed,
        "git": environment.git_state(),
        "pairs": [asdict(pair) for pair in pairs],
    }


def write_comparison(pairs: Sequence[Pair], seed: int, folder: Path) -> None:
    """Write the record and its page into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / RECORD_NAME, as_record(pairs, seed))
    write_atomic(folder / PAGE_NAME, page(pairs, seed).encode())
