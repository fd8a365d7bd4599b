"""Statistics of a token file that decide how well n-gram drafting does: `ladder corpus stats`.

The same figures for real and for synthetic text, so that one can be laid beside the other.
"""

from __future__ import annotations

import dataclasses
import math
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from draft_ladder.base import native
from draft_ladder.data.cache import build_static_cache, check_same_tokenizer
from draft_ladder.data.tokens import TokenArray, open_tokens
from draft_ladder.report.style import TextTable, as_text

N_CTX = 4096
N_DRAFT = 3
REPLAY_VARIANT = "frozen_precheck"
ZIPF_RANKS = (10, 10_000)
BURST_TOKENS = 5_000_000  # burstiness is measured on so many first tokens
BURST_WINDOW = 1000
BURST_COUNTS = (5, 1000)  # of tokens that occur so often there
GROWTH_FACTOR = 4


@dataclasses.dataclass(frozen=True)
class ReplayStats:
    """One replay of `frozen_precheck`, n_ctx 4096 and n_draft 3. Shares are None where nothing was drafted.

    `hit_rate`: draft calls that gave at least one token, of all; `acceptance`: accepted of drafted tokens;
    `drafted_per_call`: drafted tokens a call.
    """

    n_tokens: int
    hit_rate: float | None
    acceptance: float | None
    drafted_per_call: float | None


@dataclasses.dataclass(frozen=True)
class CorpusStats:
    """Figures of one token file; None for what so few tokens cannot tell.

    `single_share`, `at_most_100_share`: bigrams with one, with at most 100 different successors, of all
    bigrams. `bigrams_per_million`, `pairs_per_million`: different bigrams, and different (bigram, successor)
    pairs, for each million tokens. `largest`: successors of the bigram that has most. `zipf_slope`: of
    log(count) over log(rank), ranks 10 to 10,000, negative. `bigram_growth`, `pair_growth`: exponent g in
    "distinct ~ tokens^g" between a quarter of the tokens and all. `recurrence`: share of occurrences of rare
    tokens (5 to 1000 times in the first 5 million) that come again within 1000 tokens; `burstiness`: the
    same divided by what it would be in a shuffled text.
    """

    n_tokens: int
    n_distinct: int
    n_bigrams: int
    n_pairs: int
    bigrams_per_million: float | None
    pairs_per_million: float | None
    single_share: float | None
    at_most_100_share: float | None
    largest: int
    zipf_slope: float | None
    bigram_growth: float | None
    pair_growth: float | None
    recurrence: float | None
    burstiness: float | None
    replay: ReplayStats | None = None


def corpus_stats(token_file: Path, replay: Path | None = None, static: Path | None = None) -> CorpusStats:
    """Statistics of `token_file`; with `replay`, a token file, also of its replay.

    The replay uses the static cache file `static` (llama.cpp's format or frozen), or one counted from
    `token_file` if None. Memory: some 20 bytes a token. Raises InputError for a bad file.
    """
    replayed = replay or token_file
    check_same_tokenizer(token_file, replayed)
    if static is not None:
        check_same_tokenizer(static, replayed)
    tokens = open_tokens(token_file)
    counts, zipf = _frequencies(tokens)
    whole, quarter = _count_prefixes(tokens, [len(tokens), len(tokens) // GROWTH_FACTOR])
    recurrence, burstiness = _burstiness(tokens[:BURST_TOKENS])
    return CorpusStats(
        n_tokens=len(tokens),
        n_distinct=int(np.count_nonzero(counts)),
        n_bigrams=whole["n_bigrams"],
        n_pairs=whole["n_pairs"],
        bigrams_per_million=_share(whole["n_bigrams"] * 1e6, len(tokens)),
        pairs_per_million=_share(whole["n_pairs"] * 1e6, len(tokens)),
        single_share=_share(whole["n_single"], whole["n_bigrams"]),
        at_most_100_share=_share(whole["n_at_most_100"], whole["n_bigrams"]),
        largest=whole["largest"],
        zipf_slope=zipf,
        bigram_growth=_growth(whole["n_bigrams"], quarter["n_bigrams"]),
        pair_growth=_growth(whole["n_pairs"], quarter["n_pairs"]),
        recurrence=recurrence,
        burstiness=burstiness,
        replay=_replay_of(token_file, replay, static),
    )


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _growth(whole: int, part: int) -> float | None:
    return math.log(whole / part) / math.log(GROWTH_FACTOR) if part else None


def _count_prefixes(tokens: TokenArray, lengths: list[int]) -> list[dict[str, int]]:
    with native.errors():
        counts: list[dict[str, int]] = native.synthetic().count_prefixes(tokens, lengths)
    return counts


def _frequencies(tokens: TokenArray) -> tuple[npt.NDArray[np.int64], float | None]:
    """Occurrences of each token id, and the Zipf slope over logarithmically spaced ranks."""
    _, found = np.unique(tokens, return_counts=True) if _is_sparse(tokens) else (None, np.bincount(tokens))
    counts = np.sort(found[found > 0])[::-1].astype(np.int64)
    low, high = ZIPF_RANKS
    if len(counts) < 10 * low:
        return counts, None
    ranks = np.unique(np.geomspace(low, min(high, len(counts)), 200).astype(np.int64))
    slope = float(np.polyfit(np.log(ranks), np.log(counts[ranks - 1]), 1)[0])
    return counts, slope


def _is_sparse(tokens: TokenArray) -> bool:
    """Whether ids are so large that a table over them would be larger than the text."""
    return len(tokens) == 0 or int(tokens.max()) > max(1 << 24, len(tokens))


def _burstiness(tokens: TokenArray) -> tuple[float | None, float | None]:
    """Recurrence of rare tokens within BURST_WINDOW, and that divided by the expectation of a shuffled
    text.
    """
    if len(tokens) == 0:
        return None, None
    order = np.argsort(tokens, kind="stable")
    values = tokens[order]
    starts = np.flatnonzero(np.r_[True, values[1:] != values[:-1]])
    counts = np.diff(np.r_[starts, len(values)])
    per_occurrence = np.repeat(counts, counts)
    rare = (per_occurrence >= BURST_COUNTS[0]) & (per_occurrence <= BURST_COUNTS[1])
    again = (values[1:] == values[:-1]) & (np.diff(order) <= BURST_WINDOW) & rare[:-1]
    n_rare = int(np.count_nonzero(rare))
    if n_rare == 0:
        return None, None
    expected = -np.expm1(-BURST_WINDOW * (per_occurrence[rare] - 1) / len(tokens)).mean()
    recurrence = int(np.count_nonzero(again)) / n_rare
    return recurrence, _share(recurrence, float(expected))


def _replay_of(token_file: Path, replay: Path | None, static: Path | None) -> ReplayStats | None:
    if replay is None:
        return None
    if static is not None:
        return replay_stats(replay, static)
    with tempfile.TemporaryDirectory() as folder:
        built = build_static_cache(token_file, Path(folder), formats=("frozen",))
        return replay_stats(replay, built.paths["frozen"])


def replay_stats(replay: Path, static: Path, n_draft: int = N_DRAFT) -> ReplayStats:
    """Replays a token file with `frozen_precheck` and a static file. Raises InputError for bad files."""
    tokens = open_tokens(replay)
    with tempfile.TemporaryDirectory() as folder, native.errors():
        if native.builder().format_of(str(static)) == "llama":
            frozen = Path(folder) / "static.frozen"
            native.builder().freeze(str(static), str(frozen), False, 0)
            static = frozen
        drafter = native.variant(REPLAY_VARIANT).Drafter()
        drafter.load(str(static))
        run = drafter.replay(tokens.tobytes(), N_CTX, n_draft)
    return ReplayStats(
        n_tokens=len(tokens),
        hit_rate=_share(run["hit_calls"], run["draft_calls"]),
        acceptance=_share(run["n_accept"], run["n_drafted"]),
        drafted_per_call=_share(run["n_drafted"], run["draft_calls"]),
    )


# --- printing -------------------------------------------------------------------------------------

_ROWS = (
    ("tokens", "n_tokens", "{:,}"),
    ("different tokens", "n_distinct", "{:,}"),
    ("bigrams", "n_bigrams", "{:,}"),
    ("(bigram, successor) pairs", "n_pairs", "{:,}"),
    ("bigrams per million tokens", "bigrams_per_million", "{:,.0f}"),
    ("pairs per million tokens", "pairs_per_million", "{:,.0f}"),
    ("one successor", "single_share", "{:.2%}"),
    ("at most 100 successors", "at_most_100_share", "{:.2%}"),
    ("largest list", "largest", "{:,}"),
    ("Zipf slope, ranks 10 to 10,000", "zipf_slope", "{:.3f}"),
    ("growth exponent of bigrams", "bigram_growth", "{:.3f}"),
    ("growth exponent of pairs", "pair_growth", "{:.3f}"),
    ("rare tokens again within 1000", "recurrence", "{:.2%}"),
    ("the same against a shuffled text", "burstiness", "{:.1f}x"),
    ("hit rate", "replay.hit_rate", "{:.2%}"),
    ("acceptance", "replay.acceptance", "{:.2%}"),
    ("drafted tokens a call", "replay.drafted_per_call", "{:.3f}"),
)


def table(columns: dict[str, CorpusStats]) -> str:
    """The statistics of several token files side by side, as plain text; '-' for what is not known."""
    rows = []
    for label, key, form in _ROWS:
        values = [lookup(stats, key) for stats in columns.values()]
        if any(value is not None for value in values):
            rows.append((label, *("-" if value is None else form.format(value) for value in values)))
    return as_text(TextTable("", ("", *columns), rows))


def lookup(stats: CorpusStats, key: str) -> Any:
    """A figure by its name, `replay.` before those of the replay; None for what is not known."""
    value: Any = stats
    for name in key.split("."):
        value = None if value is None else getattr(value, name)
    return value
