"""`ladder corpus compare`: real text beside synthetic, judged by the documented limits."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from draft_ladder.base.errors import InputError
from draft_ladder.cli.program import app
from draft_ladder.data import spill
from draft_ladder.studies.corpus_comparison import FIGURES, Pair, difference, table, verdict
from draft_ladder.studies.corpus_stats import CorpusStats, ReplayStats
from typer.testing import CliRunner

try:
    spill.caches_module()
except InputError as error:
    pytest.skip(f"native modules are not built: {error}", allow_module_level=True)

STATS = CorpusStats(
    n_tokens=10,
    n_distinct=3,
    n_bigrams=4,
    n_pairs=5,
    bigrams_per_million=200.0,
    pairs_per_million=300.0,
    single_share=0.5,
    at_most_100_share=0.99,
    largest=3,
    zipf_slope=None,
    bigram_growth=None,
    pair_growth=None,
    recurrence=None,
    burstiness=None,
    replay=ReplayStats(n_tokens=10, hit_rate=0.3, acceptance=0.4, drafted_per_call=1.0),
)


def test_shares_are_judged_in_points_and_counts_in_percent() -> None:
    other = dataclasses.replace(STATS, single_share=0.56, bigrams_per_million=161.0, pairs_per_million=239.0)
    pair = Pair(25, "text", STATS, other)
    found = {figure.key: difference(figure, pair) for figure in FIGURES}
    assert found["single_share"] == pytest.approx(6.0)
    assert found["bigrams_per_million"] == pytest.approx(-19.5)
    assert found["replay.hit_rate"] == 0
    verdicts = {figure.key: verdict(figure, found[figure.key]) for figure in FIGURES}
    assert verdicts["single_share"] == "OUTSIDE"
    assert verdicts["bigrams_per_million"] == "within"
    assert verdicts["pairs_per_million"] == "OUTSIDE"
    assert len(table([pair]).rows) == len(FIGURES)


def test_what_is_not_known_is_not_judged() -> None:
    nothing = dataclasses.replace(STATS, replay=None, bigrams_per_million=0.0)
    pair = Pair(25, "text", nothing, STATS)
    by_key = {figure.key: verdict(figure, difference(figure, pair)) for figure in FIGURES}
    assert by_key["replay.acceptance"] == by_key["bigrams_per_million"] == "unknown"


def config(folder: Path, corpus: str) -> Path:
    path = folder / "c.toml"
    path.write_text(f'name = "c"\nsizes_mb = [0, 0.2]\nvariants = ["frozen"]\n[corpus]\n{corpus}\n')
    return path


def test_both_corpora_are_built_and_replayed(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("".join(f"line {n} of a text about {n % 7}\n" for n in range(12_000)))
    (tmp_path / "test.txt").write_text("".join(f"line {n} of a text about {n % 5}\n" for n in range(900)))
    path = config(
        tmp_path, f'source = "files"\ntrain = ["{tmp_path}/train.txt"]\nreplay = ["{tmp_path}/test.txt"]'
    )
    arguments = [
        "corpus",
        "compare",
        str(path),
        "--out",
        str(tmp_path / "out"),
        "--cache-dir",
        str(tmp_path / "w"),
    ]
    result = CliRunner().invoke(app, [*arguments, "--json"], catch_exceptions=False)
    record = json.loads(result.stdout)
    (pair,) = record["pairs"]
    assert pair["size_mb"] == 0.2
    assert pair["real"]["n_tokens"] > 40_000
    assert pair["synthetic"]["n_tokens"] > 40_000
    assert pair["real"]["replay"]["acceptance"] is not None
    assert pair["real"]["single_share"] != pair["synthetic"]["single_share"]
    assert json.loads((tmp_path / "out" / "corpora.json").read_text()) == record
    assert "| hit rate | 0.2 |" in (tmp_path / "out" / "corpora.md").read_text()


def test_synthetic_text_is_not_compared_with_itself(tmp_path: Path) -> None:
    path = config(tmp_path, 'source = "synthetic"')
    result = CliRunner().invoke(app, ["corpus", "compare", str(path)])
    assert isinstance(result.exception, InputError)
    assert str(result.exception).startswith("corpus: is synthetic; name a config")
