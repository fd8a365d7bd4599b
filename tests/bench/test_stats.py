"""Statistics: pure functions of the records; what does not exist is empty, never NaN."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from draft_ladder.base.errors import DraftsDifferError, InputError
from draft_ladder.bench import metrics as registry
from draft_ladder.bench.metrics import (
    METRICS,
    Column,
    Metric,
    histogram_quantile,
    metric_values,
    shown_in,
)
from draft_ladder.bench.records import Failure
from draft_ladder.bench.stats import load_results, run_rows, summarize, to_csv, write_csv_files
from draft_ladder.cli.display import run_line
from draft_ladder.report import stats_table
from draft_ladder.report.stats_table import tables
from sample_records import make_measured, make_record, make_spec, write_results


def values(timing: str = "call", **changes: object) -> dict[str, float | int | None]:
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
    lines = list(csv.DictReader(to_csv(("metric", "value"), rows.values()).splitlines()))
    assert {line["value"] for line in lines if line["metric"] == "draft_latency_us"} == {""}
    assert not [line for line in lines if line["value"].lower() == "nan"]


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
    records = [
        make_record(make_spec(n_draft=n, axes={"segment_bytes": size}), make_measured(n * 1.0))
        for n in (16, 3)
        for size in ("16384", "1024", "2048")
    ] + [make_record(make_spec("frozen"), make_measured(1.0))]
    rows = [row for row in run_rows(records) if row.metric == "draft_latency_us"]
    assert {row.variant for row in rows} == {"copying_map", "frozen"}
    found = [(row.settings.get("axes.segment_bytes"), row.settings["n_draft"]) for row in rows]
    numbers = [("1024", 3), ("1024", 16), ("2048", 3), ("2048", 16), ("16384", 3), ("16384", 16), (None, 3)]
    assert found == numbers
    assert len([row for row in summarize(rows) if row.median == 16.0]) == 3


def test_every_setting_is_a_column(tmp_path: Path) -> None:
    records = [
        make_record(make_spec("copying_map", axes={"hash": "xor"}, n_draft=16), make_measured()),
        make_record(make_spec("frozen"), make_measured()),
    ]
    folder = write_results(tmp_path / "r", records)
    write_csv_files(load_results(folder))
    for name in ("runs.csv", "summary.csv"):
        with (folder / name).open() as file:
            rows = {row["variant"]: row for row in csv.DictReader(file)}
        names = ("n_ctx", "n_draft", "page_cache", "axes.hash")
        assert [rows["copying_map"][name] for name in names] == ["4096", "16", "warm", "xor"]
        assert [rows["frozen"][name] for name in names] == ["4096", "3", "warm", ""]


def test_tables_name_what_varies_alone() -> None:
    records = [make_record(make_spec(n_draft=n), make_measured(6058.4)) for n in (3, 1024, 16)]
    times, _ = tables(summarize(run_rows(records)))
    assert [row[0] for row in times.rows] == [f"copying_map[n_draft={n}]" for n in (3, 16, 1024)]
    assert dict(zip(times.columns, times.rows[0], strict=True))["latency"] == "6,058"


def test_the_registry_says_where_every_metric_is_shown() -> None:
    for metric in METRICS:
        assert metric.better is not None or not metric.shown, metric.name
        assert metric.words or not {"ablate", "claims"} & set(metric.shown), metric.name
    headings = [metric.column.heading for metric in METRICS if metric.column is not None]
    assert len(headings) == len(set(headings))
    rate = next(metric for metric in METRICS if metric.name == "hit_rate")
    assert (rate.gain(0.2, 0.4), rate.stem) == (2.0, "hit_rate")
    latency = shown_in("compare")["draft_latency_us"]
    assert (latency.gain(0.2, 0.4), latency.stem) == (0.5, "draft_latency")


def test_a_new_metric_is_one_entry_of_the_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """It reaches the CSV files, its table, compare and export without another line."""
    new = Metric(
        "calls",
        "tokens",
        "draft calls",
        None,
        lambda measured: measured["draft_calls"],
        "",
        better="lower",
        column=Column("drafts", "calls"),
        shown=("compare", "export"),
    )
    monkeypatch.setattr(registry, "METRICS", (*METRICS, new))
    monkeypatch.setattr(stats_table, "METRICS", (*METRICS, new))
    rows = run_rows([make_record(make_spec(), make_measured())])
    assert [row.value for row in rows if row.metric == "calls"] == [5000]
    _, drafts = tables(summarize(rows))
    assert dict(zip(drafts.columns, drafts.rows[0], strict=True))["calls"] == "5,000"
    assert "calls" in shown_in("compare")
    assert "calls" in shown_in("export")


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
    with pytest.raises(InputError, match="nowhere"):
        load_results(tmp_path / "nowhere")


def test_a_line_of_progress_names_what_its_pass_measured() -> None:
    spec = make_spec("frozen", 25)
    assert "2 µs" in run_line(make_record(spec, make_measured(2.0)))
    tail = make_spec("frozen", 25, timing="histogram")
    measured = make_measured(2.0) | {"histogram": [[1_000, 99], [8_000, 1]]}
    assert "draft calls p50 1, p99 1 µs" in run_line(make_record(tail, measured))
    assert "no draft call" in run_line(make_record(tail, measured | {"histogram": []}))


@pytest.mark.parametrize(
    "change", [{"n_drafted": "many"}, {"n_drafted": None}, {"n_accept": 10**9}, {"draft_ns_total": -5}]
)
def test_figures_that_no_run_can_have_are_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    good = make_record(make_spec("frozen", 25), make_measured(2.0))
    bad = make_record(make_spec("frozen", 25, 1), make_measured(2.0) | change)
    folder = write_results(tmp_path / "machine" / "sample", [good, bad])
    with pytest.raises(InputError, match=rf"runs/{bad.key}\.json: measured: "):
        load_results(folder)


def test_records_that_draft_otherwise_are_refused(tmp_path: Path) -> None:
    good = make_record(make_spec("sorted_vectors", 25), make_measured(digest="a" * 64))
    bad = make_record(make_spec("frozen", 25), make_measured(digest="b" * 64))
    folder = write_results(tmp_path / "machine" / "sample", [good, bad])
    with pytest.raises(DraftsDifferError, match=r"differ") as caught:
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
    with pytest.raises(InputError, match=r"experiment\.json: experiment"):
        load_results(folder)
    (folder / "experiment.json").write_text("[" * 100_000)
    with pytest.raises(InputError, match=r"experiment\.json"):
        load_results(folder)


def test_a_draft_length_of_zero_is_the_reason_that_nothing_is_drafted() -> None:
    nothing = make_measured(n_drafted=0, n_accept=0, hit_calls=0)
    notes = [
        {row.metric: row.note for row in run_rows([make_record(make_spec(n_draft=n), nothing)])}
        for n in (0, 3)
    ]
    for name in ("draft_latency_us", "acceptance"):
        assert "n_draft" in notes[0][name]
        assert "n_draft" not in notes[1][name]
        assert notes[1][name]
    assert notes[0]["load_verify_s"] == notes[1]["load_verify_s"]
