"""The export is read by the real pyperf."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from draft_ladder.bench.metrics import shown_in
from draft_ladder.bench.records import Failure
from draft_ladder.bench.stats import load_results
from draft_ladder.report.export import pyperf_suite, to_json
from sample_records import make_measured, make_record, make_spec, write_results

pytest.importorskip("pyperf")


def export(folder: Path, name: str, factor: float) -> Path:
    records = [
        make_record(make_spec(variant, size, repeat), make_measured((10.0 + repeat) * factor))
        for variant in ("sorted_vectors", "frozen")
        for size in (0, 541)
        for repeat in range(3)
    ]
    failed = make_spec("copying_map", 25)
    records.append(make_record(failed, None, Failure(reason="killed", detail="SIGKILL")))
    path = folder / f"{name}.json"
    path.write_text(to_json(pyperf_suite(load_results(write_results(folder / name, records)))))
    return path


def pyperf(*arguments: object) -> str:
    command = [sys.executable, "-m", "pyperf", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_pyperf_reads_prints_and_compares(tmp_path: Path) -> None:
    a, b = export(tmp_path, "a", 1.0), export(tmp_path, "b", 0.5)
    stats = pyperf("stats", a)
    assert "frozen/541MB/draft_latency" in stats
    assert "11.0 us" in stats
    assert "#" in pyperf("hist", a)
    table = pyperf("compare_to", a, b, "--table")
    assert "frozen/541MB/draft_latency" in table
    assert "2.00x faster" in table


@pytest.mark.parametrize(
    ("commits", "expected"),
    [((None, None), None), (("b", None, "a", "b"), "a, b"), (("c",), "c")],
)
def test_the_commit_is_that_of_every_record_or_absent(
    tmp_path: Path, commits: tuple[str | None, ...], expected: str | None
) -> None:
    records = [
        make_record(make_spec("frozen", 25, repeat), make_measured(), environment={"git_commit": commit})
        for repeat, commit in enumerate(commits)
    ]
    suite = pyperf_suite(load_results(write_results(tmp_path / "r", records)))
    assert suite["metadata"].get("commit_id") == expected


def test_units_and_names(tmp_path: Path) -> None:
    record = make_record(make_spec("frozen", 2.5, axes={"hash": "xor"}), make_measured())
    results = load_results(write_results(tmp_path / "r", [record]))
    suite = pyperf_suite(results, ["peak_rss_mb", "load_time_s"])
    names = [one["metadata"]["name"] for one in suite["benchmarks"]]
    assert names == ["frozen[hash=xor]/2.5MB/load_time", "frozen[hash=xor]/2.5MB/peak_rss"]
    everything = pyperf_suite(results)["benchmarks"]
    assert len(everything) == len(shown_in("export"))


def test_values_are_seconds_and_bytes(tmp_path: Path) -> None:
    suite = json.loads(export(tmp_path, "a", 1.0).read_text())
    runs = {one["metadata"]["name"]: one for one in suite["benchmarks"]}
    latency = runs["sorted_vectors/541MB/draft_latency"]
    assert latency["metadata"]["unit"] == "second"
    assert sorted(run["values"][0] for run in latency["runs"]) == pytest.approx([10e-6, 11e-6, 12e-6])
    assert runs["frozen/541MB/peak_rss"]["runs"][0]["values"] == [50_000_000]
