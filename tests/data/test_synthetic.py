"""Synthetic streams (the same everywhere, like text in what counts) and `ladder corpus stats`."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from draft_ladder.base import native
from draft_ladder.base.errors import InputError
from draft_ladder.cli import text_verbs
from draft_ladder.data import corpus
from draft_ladder.data.cache import build_static_cache, check_same_tokenizer
from draft_ladder.data.resolve import resolve_source
from draft_ladder.data.sources import FilesConfig
from draft_ladder.data.synthetic import PARAMETERS, SyntheticConfig, SyntheticSource, text_bytes, tokens_of
from draft_ladder.data.tokens import load_token_file, open_tokens, write_tokens
from draft_ladder.studies.corpus_stats import CorpusStats, corpus_stats, replay_stats, table
from typer.testing import CliRunner

# Of the first 2^17 tokens of seed 1's two streams. Any compiler, processor and library must give these.
CORPUS_SHA256 = "c439ac800fc64e2d9e9b13d41104759c0f6d437c54fef6826147335fa6d4b175"
REPLAY_SHA256 = "5d5b5cdd80e8be01ba3049ac39a3ff61fd9afa6ef8c67426d4aaddea8e9c2df9"

# The first 1,430,322 tokens (6.25 MB) of the WikiText-style corpus under Tekken, and the replay of WikiText's
# test split (304,410 tokens) with the static cache of these.
REAL_TOKENS = 1_430_322
REAL = {"n_bigrams": 474_533, "n_pairs": 946_858, "n_distinct": 36_549}
REAL_SINGLE_SHARE, REAL_AT_MOST_100_SHARE = 0.7524, 0.9994
REAL_HIT_RATE, REAL_ACCEPTANCE = 0.3128, 0.3138


@pytest.fixture(scope="module", autouse=True)
def _native_modules() -> None:
    try:
        native.synthetic()
        native.builder()
        native.variant("frozen_precheck")
    except InputError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def small(cache: Path) -> Path:
    return SyntheticSource().tokens("corpus", REAL_TOKENS, cache).path


@pytest.fixture(scope="module")
def replayed(cache: Path) -> Path:
    return SyntheticSource().tokens("replay", 304_410, cache).path


# --- the same everywhere --------------------------------------------------------------------------


@pytest.mark.parametrize(("stream", "expected"), [("corpus", CORPUS_SHA256), ("replay", REPLAY_SHA256)])
def test_a_seed_gives_these_very_tokens(stream: Any, expected: str) -> None:
    tokens = SyntheticSource().generator(stream).read(1 << 17)
    assert hashlib.sha256(tokens).hexdigest() == expected


def test_reading_in_pieces_gives_the_same_stream() -> None:
    whole = SyntheticSource().generator("corpus").read(60_000)
    pieces = SyntheticSource().generator("corpus")
    lengths = [0, 1, 1, 2, 3, 4095, 1, 8192, 20_011]
    joined = b"".join(pieces.read(length) for length in [*lengths, 60_000 - sum(lengths)])
    assert joined == whole


def test_a_small_corpus_is_the_beginning_of_a_large_one(cache: Path) -> None:
    source = SyntheticSource(seed=5)
    small, large = (corpus.build_corpus(source, size, cache).path for size in (0.1, 0.5))
    assert large.read_bytes().startswith(small.read_bytes())
    assert small.stat().st_size == 4 * tokens_of(100_000)


def test_memory_does_not_grow_with_the_stream() -> None:
    generator = SyntheticSource().generator("corpus")
    before = generator.memory_bytes()
    generator.read(500_000)
    assert generator.memory_bytes() == before < 16_000_000


def test_seeds_and_streams_are_different_texts() -> None:
    texts = {SyntheticSource(seed).generator("corpus").read(1000) for seed in (0, 1, 2, 2**32 - 1)}
    texts.add(SyntheticSource(1).generator("replay").read(1000))
    assert len(texts) == 5


# --- like text ------------------------------------------------------------------------------------


def test_counts_and_shares_are_those_of_text(small: Path) -> None:
    stats = corpus_stats(small)
    for name, real in REAL.items():
        assert abs(getattr(stats, name) / real - 1) < 0.2, name
    assert stats.single_share == pytest.approx(REAL_SINGLE_SHARE, abs=0.05)
    assert stats.at_most_100_share == pytest.approx(REAL_AT_MOST_100_SHARE, abs=0.005)
    assert stats.burstiness is not None
    assert stats.burstiness > 2.5  # of the real text 4.0: less bursty, but far from a shuffled text's 1


def test_drafting_does_as_well_as_on_text(small: Path, replayed: Path) -> None:
    stats = corpus_stats(small, replayed).replay
    assert stats is not None
    assert stats.hit_rate == pytest.approx(REAL_HIT_RATE, abs=0.05)
    assert stats.acceptance == pytest.approx(REAL_ACCEPTANCE, abs=0.05)


def test_the_replayed_text_is_not_in_the_corpus(small: Path, replayed: Path) -> None:
    tokens, other = open_tokens(small), open_tokens(replayed)
    windows = {tokens[i : i + 32].tobytes() for i in range(len(tokens) - 32)}
    assert not any(other[i : i + 32].tobytes() in windows for i in range(len(other) - 32))


@pytest.mark.parametrize("period", [1, 2, 3, 5, 8])
def test_documents_do_not_run_in_circles(replayed: Path, period: int) -> None:
    """In WikiText's test split no more than 10 tokens in a row equal those up to 12 before."""
    tokens = open_tokens(replayed)
    differ = np.flatnonzero(np.r_[True, tokens[period:] != tokens[:-period], True])
    assert int(np.diff(differ).max()) - 1 < 32


# --- in the pipeline ------------------------------------------------------------------------------


def test_a_corpus_table_gives_corpus_and_replay(cache: Path) -> None:
    config = SyntheticConfig(source="synthetic", seed=7, replay_tokens=9000)
    source = resolve_source(config)
    assert source.kind == "synthetic"
    assert "synthetic" in source.label
    made = corpus.build_corpus(source, 0.25, cache)
    assert made.kind == "synthetic"
    assert not made.clipped
    assert made.bytes == pytest.approx(250_000, abs=5)
    text = corpus.replay_text(source, cache)
    assert "synthetic" in text.label
    assert load_token_file(text.path).n_tokens == 9000
    tokens = load_token_file(made.path)
    assert (tokens.tokenizer, tokens.vocab_size) == ("synthetic", 131_072)
    assert tokens.text_sha256 != load_token_file(text.path).text_sha256
    assert corpus.build_corpus(source, 0.25, cache) == made
    assert open_tokens(made.path).max() < 131_072


def test_two_languages_do_not_mix(cache: Path) -> None:
    one, other = (SyntheticSource(seed).tokens("corpus", 5000, cache) for seed in (1, 2))
    built = build_static_cache(one.path, cache)
    check_same_tokenizer(built.paths["frozen"], SyntheticSource(1).tokens("replay", 5000, cache).path)
    with pytest.raises(InputError, match="tokenizer 'synthetic'"):
        check_same_tokenizer(built.paths["frozen"], other.path)


def test_there_is_no_text_to_read() -> None:
    with pytest.raises(InputError, match="no text"):
        SyntheticSource().blocks("train")


def test_what_a_text_lacks_is_filled_in(cache: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"some words here\n" * 10_000)
    (tmp_path / "b.txt").write_bytes(b"other words\n" * 100)
    files = {"train": ["a.txt"], "replay": ["b.txt"]}
    source = resolve_source(FilesConfig(source="files", **files), tmp_path)
    real, found = corpus.corpus_or_synthetic(source, 0.1, cache)
    assert (real.kind, found.kind) == ("real", "real")
    filled, found = corpus.corpus_or_synthetic(source, 0.2, cache)
    assert (filled.kind, found.kind) == ("synthetic", "synthetic")
    assert found.bytes == pytest.approx(200_000, abs=5)
    assert filled.note is not None
    assert "0.16 MB" in filled.note


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"vocabulary": 1}, "vocabulary"),
        ({"jump": 1.5}, "jump"),
        ({"copy": ()}, "copy"),
        ({"copy": (0.0, -0.1)}, "copy"),
        ({"frequencies": ((1, 5.0),)}, "knots"),
        ({"frequencies": ((2, 5.0), (1, 4.0))}, "ascend"),
        ({"bigram": PARAMETERS.bigram.model_copy(update={"discount": 1.0})}, "discount"),
        ({"trigram": PARAMETERS.trigram.model_copy(update={"head": -1.0})}, "head"),
    ],
)
def test_bad_parameters_are_named(change: dict[str, Any], key: str) -> None:
    fields = PARAMETERS.model_dump(by_alias=True) | change
    source = SyntheticSource(parameters=type(PARAMETERS).model_validate(fields))
    with pytest.raises(InputError, match=key):
        source.generator("corpus")


@pytest.mark.parametrize("vocabulary", [2, 50, 1000])
def test_small_vocabularies_work(vocabulary: int) -> None:
    parameters = PARAMETERS.model_copy(update={"vocabulary": vocabulary})
    tokens = np.frombuffer(SyntheticSource(parameters=parameters).generator("corpus").read(50_000), "<i4")
    assert 0 <= tokens.min() <= tokens.max() < vocabulary


@pytest.mark.parametrize("n_tokens", [0, -1])
def test_no_tokens_is_no_length(n_tokens: int, cache: Path) -> None:
    with pytest.raises(InputError, match="length"):
        SyntheticSource().tokens("corpus", n_tokens, cache)


def test_sizes_are_those_of_text() -> None:
    assert tokens_of(541_000_000) == pytest.approx(123_804_995, rel=0.001)
    assert abs(text_bytes(tokens_of(25_000_000)) - 25_000_000) < 5


# --- statistics of any token file -----------------------------------------------------------------


def write(path: Path, tokens: list[int]) -> Path:
    write_tokens(path, tokens)
    return path


def test_hand_counted_statistics(tmp_path: Path) -> None:
    stats = corpus_stats(write(tmp_path / "a.tok", [1, 2, 3, 1, 2, 4, 1, 2, 3]))
    # bigrams with a successor: (1,2) -> 3, 4; (2,3) -> 1; (3,1) -> 2; (2,4) -> 1; (4,1) -> 2
    assert (stats.n_tokens, stats.n_distinct, stats.n_bigrams, stats.n_pairs) == (9, 4, 5, 6)
    assert stats.single_share == pytest.approx(4 / 5)
    assert (stats.at_most_100_share, stats.largest) == (1.0, 2)
    assert stats.bigrams_per_million == pytest.approx(5e6 / 9)


def test_statistics_equal_a_plain_count(tmp_path: Path) -> None:
    tokens = [int(rank) % 500 for rank in np.random.default_rng(7).zipf(1.3, 20_000)]
    successors: dict[tuple[int, int], set[int]] = defaultdict(set)
    for first, second, third in zip(tokens, tokens[1:], tokens[2:], strict=False):
        successors[first, second].add(third)
    sizes = [len(found) for found in successors.values()]
    stats = corpus_stats(write(tmp_path / "a.tok", tokens))
    assert (stats.n_bigrams, stats.n_pairs, stats.largest) == (len(sizes), sum(sizes), max(sizes))
    assert stats.single_share == sizes.count(1) / len(sizes)


@pytest.mark.parametrize("tokens", [[], [5], [5, 5], [5, 2**31 - 1, 5]])
def test_tiny_files_have_null_not_nan(tmp_path: Path, tokens: list[int]) -> None:
    path = write(tmp_path / "a.tok", tokens)
    result = CliRunner().invoke(_app(), [str(path), "--json"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout, parse_constant=lambda name: pytest.fail(name))[str(path)]
    assert found["zipf_slope"] is None
    assert found["n_tokens"] == len(tokens)


def test_a_shuffled_text_is_not_bursty(small: Path, tmp_path: Path) -> None:
    tokens = np.random.default_rng(1).permutation(open_tokens(small))
    (tmp_path / "a.tok").write_bytes(tokens.tobytes())
    assert corpus_stats(tmp_path / "a.tok").burstiness == pytest.approx(1, abs=0.1)


def test_replay_statistics_are_the_variants_own(small: Path, replayed: Path, cache: Path) -> None:
    built = build_static_cache(small, cache)
    counted = corpus_stats(small, replayed).replay
    assert counted == replay_stats(replayed, built.paths["frozen"])
    assert counted == replay_stats(replayed, built.paths["llama"])


def _app() -> typer.Typer:
    app = typer.Typer()
    app.command()(text_verbs.stats)
    return app


def test_the_command_lays_files_side_by_side(small: Path, replayed: Path) -> None:
    result = CliRunner().invoke(_app(), [str(small), str(replayed), "--replay", str(replayed)])
    assert result.exit_code == 0, result.output
    assert "acceptance" in result.stdout
    assert len({len(line) for line in result.stdout.splitlines()}) == 1


def test_the_table_has_a_dash_for_what_is_unknown() -> None:
    counts = CorpusStats(2, 1, 0, 0, None, None, None, None, 0, None, None, None, None, None)
    assert any(line.split()[-1] == "-" for line in table({"a": counts, "b": counts}).splitlines()) is False
    known = CorpusStats(9, 4, 5, 6, 1.0, 1.0, 0.5, 1.0, 2, -1.0, 0.5, 0.5, 0.5, 2.0)
    assert any(line.split()[-1] == "-" for line in table({"a": known, "b": counts}).splitlines())


def test_static_belongs_to_one_file(small: Path, replayed: Path) -> None:
    with pytest.raises(InputError, match="--static"):
        text_verbs.stats([small, replayed], static=small)
