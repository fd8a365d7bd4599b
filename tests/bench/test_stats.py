"""Statistics: pure functions of the records; what does not exist is empty, never NaN."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from draft_ladder.base.errors import DraftsDifferError, InputError
from draft_ladder.bench.metrics import METRICS, histogram_quantile, metric_values
from draft_ladder.bench.records import Failure
from draft_ladder.bench.stats import load_results, run_rows, summarize, to_csv, write_csv_files
from draft_ladder.cli.display import run_line
from sample_records import make_measured, make_record, make_spec, write_results


def values(timing: str = "section", **changes: object) -> dict[str, float | int | None]:
    measured = make_measured(**changes)  # type: ignore[arg-type]
    return {metric.name: value for metric, value in metric_values(measured, timing)}


def test_every_figure_by_hand() -> None:
    found = values(latency_us=10.0)
    assert found == pytest.approx(
        {
            "draft_latency_us": 10.0,
            "draft_latency_net_us": 10.0 - 10_000 * 20 / 1000 / 1000,
            "draft_us": 8.0,
            "update_us": 2.0,
            "merge_us": 5.0,
            "us_per_call": 2.0,
            "load_time_s": 2.0,
            "load_verify_s": None,
            "peak_rss_mb": 50.0,
            "loaded_rss_mb": 40.0,
            "baseline_rss_mb": 12.0,
            "static_mb": 30.0,
            "static_file_mb": 20.0,
            "final_rss_anon_mb": 30.0,
            "final_rss_file_mb": 8.0,
            "load_and_replay_s": 2.0 + (10_000 + 5_000) * 1000 / 1e9,
            "floor_dependent_us": 4 * 100 / 1000,
            "floor_independent_us": 4 * 10 / 1000,
            "times_above_floor": (10.0 - 0.2) / 0.4,
            "acceptance": 0.4,
            "hit_rate": 0.12,
            "drafted_per_call": 0.2,
            "n_drafted": 1000,
            "n_accept": 400,
        }
    )


def test_nothing_drafted_is_null_with_a_reason() -> None:
    record = make_record(make_spec(), make_measured(n_drafted=0, n_accept=0))
    rows = {row.metric: row for row in run_rows([record])}
    for name in ("draft_latency_us", "draft_latency_net_us", "merge_us", "acceptance"):
        assert rows[name].value is None
        assert rows[name].note == "nothing was drafted"
    text = to_csv(("metric", "value"), rows.values())
    assert "nan" not in text.lower()
    assert "draft_latency_us,\n" in text


def test_no_chunk_at_all_is_null() -> None:
    found = values(n_chunks=0, n_drafted=0, n_accept=0, draft_calls=0, hit_calls=0)
    assert found["hit_rate"] is None
    assert found["us_per_call"] is None


def test_the_timing_modes_have_their_own_figures() -> None:
    assert "draft_latency_us" not in values("chunk")
    assert values("chunk", latency_us=7.0)["draft_latency_chunk_us"] == pytest.approx(7.0)
    found = values("histogram", histogram=[[1000, 50], [2000, 49], [9000, 1]])
    assert found["draft_call_p50_us"] == 1.0
    assert found["draft_call_p99_us"] == 2.0
    assert found["draft_call_max_us"] == 9.0
    assert histogram_quantile([], 0.5) is None


def test_summary_takes_each_figure_from_its_own_mode() -> None:
    records = [
        make_record(make_spec(repeat=i), make_measured(latency_us=x))
        for i, x in enumerate([30.0, 10.0, 11.0])
    ]
    records.append(make_record(make_spec(timing="chunk"), make_measured(9.0, peak_rss_bytes=1)))
    records.append(make_record(make_spec(repeat=0, warmup=True), make_measured(latency_us=99.0)))
    records.append(make_record(make_spec(repeat=3), None, Failure(reason="time-out", detail="")))
    summary = {row.metric: row for row in summarize(run_rows(records))}
    latency = summary["draft_latency_us"]
    assert (latency.n, latency.median, latency.min, latency.max) == (3, 11.0, 10.0, 30.0)
    assert summary["draft_latency_chunk_us"].n == 1
    assert summary["peak_rss_mb"].min == 50.0


def test_axes_are_told_apart() -> None:
    rows = run_rows([make_record(make_spec(axes={"hash": "murmur"}), make_measured())])
    assert {row.variant for row in rows} == {"copying_map[hash=murmur]"}


def test_files_are_written_from_the_folder_alone_and_are_stable(tmp_path: Path) -> None:
    records = [make_record(make_spec(size_mb=size), make_measured()) for size in (0, 25)]
    folder = write_results(tmp_path / "r", records)
    write_csv_files(load_results(folder))
    first = {path.name: path.read_bytes() for path in folder.glob("*.csv")}
    write_csv_files(load_results(folder))
    assert {path.name: path.read_bytes() for path in folder.glob("*.csv")} == first
    with (folder / "runs.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["metric"] for row in rows} <= {metric.name for metric in METRICS}
    assert {row["size_mb"] for row in rows} == {"0", "25"}


def test_records_outside_of_the_plan_are_counted_not_used(tmp_path: Path) -> None:
    old, new = (make_record(make_spec(module_sha256=digit * 64), make_measured()) for digit in "45")
    results = load_results(write_results(tmp_path / "r", [old, new], planned=[new.key, "f" * 24]))
    assert [record.key for record in results.records] == [new.key]
    assert (results.missing_total, results.superseded_total) == (1, 1)


def test_a_folder_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    folder = write_results(tmp_path / "r", [make_record(make_spec(), make_measured())])
    content = json.loads((folder / "experiment.json").read_text())
    (folder / "experiment.json").write_text(json.dumps({**content, "schema": 9}))
    with pytest.raises(InputError, match=r"experiment\.json: schema: .*; update"):
        load_results(folder)
    with pytest.raises(InputError, match="no such file"):
        load_results(tmp_path / "nowhere")


def test_a_line_of_progress_names_what_its_pass_measured() -> None:
    spec = make_spec("frozen", 25)
    assert "2 µs per drafted token" in run_line(make_record(spec, make_measured(2.0)))
    tail = make_spec("frozen", 25, timing="histogram")
    measured = make_measured(2.0) | {"histogram": [[1_000, 99], [8_000, 1]]}
    assert "draft calls p50 1, p99 1 µs" in run_line(make_record(tail, measured))
    assert "no draft call" in run_line(make_record(tail, measured | {"histogram": []}))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"n_drafted": "many"}, "is no report of a run"),
        ({"n_drafted": None}, "is no report of a run"),
        ({"n_accept": 10**9}, "more was accepted than drafted"),
        ({"draft_ns_total": -5}, "is negative"),
    ],
)
def test_figures_that_no_run_can_have_are_refused(
    tmp_path: Path, change: dict[str, Any], problem: str
) -> None:
    good = make_record(make_spec("frozen", 25), make_measured(2.0))
    bad = make_record(make_spec("frozen", 25, 1), make_measured(2.0) | change)
    folder = write_results(tmp_path / "machine" / "sample", [good, bad])
    with pytest.raises(InputError, match=rf"runs/{bad.key}\.json: measured: .*{problem}"):
        load_results(folder)


def test_records_that_draft_otherwise_are_refused(tmp_path: Path) -> None:
    good = make_record(make_spec("sorted_vectors", 25), make_measured(digest="a" * 64))
    bad = make_record(make_spec("frozen", 25), make_measured(digest="b" * 64))
    folder = write_results(tmp_path / "machine" / "sample", [good, bad])
    with pytest.raises(DraftsDifferError, match=r"the drafts of .* differ") as caught:
        load_results(folder)
    assert f"{good.key}.json (sorted_vectors at 25 MB" in str(caught.value)
    assert f"{bad.key}.json (frozen at 25 MB" in str(caught.value)
    assert caught.value.exit_code == 3
    # What the runner itself marked is a failed run, which nobody charts; another size is another text.
    failed = make_record(
        make_spec("frozen", 50), make_measured(digest="b" * 64), Failure(reason="drafts differ", detail="x")
    )
    fifty = make_record(make_spec("sorted_vectors", 50), make_measured(digest="c" * 64))
    assert load_results(write_results(tmp_path / "machine" / "other", [good, fifty, failed])).records


def test_a_bare_experiment_file_names_what_is_missing(tmp_path: Path) -> None:
    folder = write_results(
        tmp_path / "machine" / "sample", [make_record(make_spec("frozen", 25), make_measured(2.0))]
    )
    content = json.loads((folder / "experiment.json").read_text())
    del content["experiment"]
    (folder / "experiment.json").write_text(json.dumps(content))
    with pytest.raises(InputError, match=r"experiment\.json: experiment: is missing"):
        load_results(folder)
    (folder / "experiment.json").write_text("[" * 100_000)
    with pytest.raises(InputError, match="not readable as JSON"):
        load_results(folder)
