"""Ten tokens counted by hand: every output must agree with the hand.

n_ctx 9, so one chunk of nine tokens: 1 2 1 2 1 2 1 2 1 (the tenth is never reached). n_draft 2, no static.
  calls 1 to 4 draft nothing: no n-gram was seen often enough
  call 5, after 1 2 1 2 1: (1 2 1) -> 2, then (1 2 1 2) -> 1; both agree, and the next token is appended
  call 6, after eight tokens: (1 2 1 2) -> 1, then (2 1 2 1) -> 2; the first agrees, then the chunk is full
Drafted 4, accepted 3, 2 calls of 6 hit; at place 1: 2 of 2, at place 2: 1 of 2.
"""

from __future__ import annotations

import csv
import json
import struct
from pathlib import Path

import pytest
from draft_ladder.base.errors import ExitCode
from draft_ladder.base.manifests import sha256_file
from draft_ladder.bench.config import Experiment
from draft_ladder.bench.runner import run_experiment
from draft_ladder.bench.stats import load_results, run_rows, summarize, write_csv_files
from draft_ladder.report.pictures.position_chart import collect_positions
from draft_ladder.report.stats_table import tables
from runner_kit import Watcher, real_variants, small_experiment, small_inputs, small_plan

TOKENS = [1, 2, 1, 2, 1, 2, 1, 2, 1, 5]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("hand")
    real_variants()
    inputs = small_inputs(root / "inputs")
    inputs.tokens.write_bytes(struct.pack("<10i", *TOKENS))
    inputs = inputs.__class__(**{**vars(inputs), "tokens_sha256": sha256_file(inputs.tokens), "n_tokens": 10})
    experiment: Experiment = small_experiment(n_ctx=9, n_draft=2, sizes_mb=[0], repeats=1)
    inputs.sizes[1:] = []
    jobs = small_plan(experiment, inputs)
    assert run_experiment(experiment, jobs, root / "machine" / "hand", Watcher()) is ExitCode.OK
    return root / "machine" / "hand"


def test_json(folder: Path) -> None:
    for path in (folder / "runs").glob("*.json"):
        measured = json.loads(path.read_text())["measured"]
        assert (measured["n_drafted"], measured["n_accept"]) == (4, 3)
        assert (measured["draft_calls"], measured["hit_calls"]) == (6, 2)
        assert (measured["drafted_at"], measured["accepted_at"]) == ([2, 2], [2, 1])


def test_csv(folder: Path) -> None:
    write_csv_files(load_results(folder))
    want = {
        "n_drafted": 4,
        "n_accept": 3,
        "acceptance": 0.75,
        "hit_rate": 2 / 6,
        "drafted_per_call": 4 / 6,
        "acceptance_at_1": 1.0,
        "acceptance_at_2": 0.5,
    }
    for name, column in (("runs.csv", "value"), ("summary.csv", "median")):
        with (folder / name).open() as file:
            rows = list(csv.DictReader(file))
        for variant in ("reference_access", "sorted_vectors"):
            found = {row["metric"]: row[column] for row in rows if row["variant"] == variant}
            assert {metric: float(found[metric]) for metric in want} == pytest.approx(want)


def test_table(folder: Path) -> None:
    drafts = tables(summarize(run_rows(load_results(folder).records)))[1]
    for row in drafts.rows:
        cells = dict(zip(drafts.columns, row, strict=True))
        assert (cells["drafted"], cells["accepted"], cells["acceptance"]) == ("4", "3", "0.75")
        assert (cells["hit rate"], cells["by place in the draft"]) == ("0.3333", "1 0.5")


def test_chart_data(folder: Path) -> None:
    results = load_results(folder)
    series = collect_positions(run_rows(results.records), results.variants)
    assert [item.variant for item in series] == ["reference_access", "sorted_vectors"]
    for item in series:
        assert item.shares == (1.0, 0.5)
        assert (item.n_drafted, item.n_accept) == (4, 3)
        assert item.hit_rate == pytest.approx(2 / 6)
