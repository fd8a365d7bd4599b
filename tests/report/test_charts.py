"""Charts: from records alone, the same bytes every time, nothing drawn that was not measured."""

from __future__ import annotations

import shutil
from itertools import pairwise
from pathlib import Path

import pytest
from draft_ladder.bench.records import CorpusLabel, Failure, TextLabel
from draft_ladder.bench.stats import load_results, run_rows
from draft_ladder.report.caption import absences, caption
from draft_ladder.report.charts import (
    CHARTS,
    collect,
    comparable_sizes,
    draw,
    figure_text,
    horizontal_places,
    spread,
    write_charts,
)
from draft_ladder.report.position_chart import PositionSeries, counts_text, draw_positions
from sample_records import STYLE, make_measured, make_record, make_spec, write_results

LATENCY = {
    "copying_map": 400.0,
    "reference_access": 65.0,
    "segmented_map": 64.0,
    "sorted_vectors": 19.0,
    "frozen": 16.0,
    "frozen_precheck": 5.0,
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    records = []
    for size in (0, 25, 541):
        for repeat in range(2):
            for name, latency in LATENCY.items():
                spec = make_spec(name, size, repeat)
                if (name, size) == ("segmented_map", 541):
                    records.append(make_record(spec, None, Failure(reason="time-out", detail="no answer")))
                else:
                    load = None if size == 0 else 10_000_000 * size
                    records.append(
                        make_record(spec, make_measured(latency + repeat + size / 100, load_ns=load))
                    )
    return write_results(tmp_path / "machine" / "sample", records)


def test_charts_are_the_same_bytes_from_the_records_alone(tmp_path: Path, folder: Path) -> None:
    first = {path.name: path.read_bytes() for path in write_charts(load_results(folder), tmp_path / "plots")}
    assert set(first) == {f"{chart.name}.{suffix}" for chart in CHARTS for suffix in ("svg", "png")}
    shutil.rmtree(tmp_path / "plots")
    again = {path.name: path.read_bytes() for path in write_charts(load_results(folder), tmp_path / "plots")}
    assert again == first
    assert b"<dc:date>" not in first["draft_latency.svg"]


def test_a_failed_run_is_absent_and_noted(folder: Path) -> None:
    results = load_results(folder)
    series = {item.name: item for item in collect(CHARTS[0], run_rows(results.records), results.variants)}
    assert series["segmented_map"].sizes == [0, 25]
    assert series["copying_map"].sizes == [0, 25, 541]
    assert absences(results) == ["failed and not shown (time-out): segmented_map at 541 MB"]


def test_series_are_in_ladder_order_with_the_variants_own_style(folder: Path) -> None:
    results = load_results(folder)
    series = collect(CHARTS[0], run_rows(results.records), results.variants)
    assert [item.name for item in series] == list(STYLE)
    assert [item.color for item in series] == [style[3] for style in STYLE.values()]
    assert [item.name for item in series if item.dashed] == ["frozen"]


def test_no_load_time_at_0_mb_and_no_speed_up_of_the_first_rung(folder: Path) -> None:
    results = load_results(folder)
    load, speedup = (
        next(chart for chart in CHARTS if chart.name == name) for name in ("load_time", "speedup")
    )
    rows = run_rows(results.records)
    assert all(0 not in item.sizes for item in collect(load, rows, results.variants))
    relative = {item.name: item for item in collect(speedup, rows, results.variants)}
    assert "copying_map" not in relative
    assert relative["frozen_precheck"].low[1] == pytest.approx(400.75 / 6.25)


def words_of(folder: Path, name: str) -> list[str]:
    """The title and the line below it."""
    results = load_results(folder)
    chart = next(chart for chart in CHARTS if chart.name == name)
    figure = draw(chart, collect(chart, run_rows(results.records), results.variants), results)
    return [text.get_text() for text in figure.texts[:2]]


def test_the_title_names_what_the_speed_up_is_over(tmp_path: Path) -> None:
    records = [
        make_record(make_spec(name, 25), make_measured(LATENCY[name]))
        for name in ("sorted_vectors", "frozen_precheck")
    ]
    folder = write_results(tmp_path / "m" / "past", records)
    assert words_of(folder, "speedup") == [
        "Draft latency: speed-up over sorted vectors (not answer time)",
        "higher is better  ·  one run",
    ]


def test_counts_are_written_in_full_or_are_a_dash(tmp_path: Path) -> None:
    at_place = {"drafted_at": [1_234_567, 0, 0], "accepted_at": [400, 0, 0]}
    measured = make_measured(n_drafted=1_234_567, draft_calls=0, hit_calls=0, **at_place)
    folder = write_results(tmp_path / "m" / "s", [make_record(make_spec("frozen", 25), measured)])
    figure = draw_positions(load_results(folder))
    assert figure is not None
    legend = figure.axes[0].get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == [
        "frozen: 400 of 1,234,567, hit rate -",
    ]
    missing = PositionSeries("frozen", "frozen", "red", "o", 25, (0.5,), None, None, None)
    assert counts_text(missing) == "- of -, hit rate -"


def test_each_variants_floor_is_said_to_be_its_own(folder: Path) -> None:
    floor = next(chart for chart in CHARTS if chart.name == "above_floor")
    results = load_results(folder)
    drawn = draw(floor, collect(floor, run_rows(results.records), results.variants), results)
    assert drawn.axes[0].get_ylabel() == "times the floor of its own file's size (log scale)"


def test_the_number_of_runs_is_that_of_every_point(tmp_path: Path, folder: Path) -> None:
    assert "median of 2 runs, bars" in words_of(folder, "draft_latency")[1]
    records = [
        make_record(make_spec(name, 25, repeat), make_measured(LATENCY[name]))
        for name, repeats in (("sorted_vectors", 3), ("frozen", 2))
        for repeat in range(repeats)
    ]
    uneven = write_results(tmp_path / "m" / "uneven", records)
    assert "median of 2 to 3 runs, bars" in words_of(uneven, "draft_latency")[1]


def test_the_caption_names_machine_build_commit_and_corpus(folder: Path) -> None:
    text = "\n".join(caption(load_results(folder)))
    for part in (
        "A CPU, 2 cores, 8 GB",
        "gcc 12.2.0 -O3",
        "commit 0123456789",
        "Some text (real)",
        "n_ctx 4096, n_draft 3",
    ):
        assert part in text


def test_an_unfinished_or_empty_experiment_can_be_drawn(tmp_path: Path) -> None:
    record = make_record(make_spec(), make_measured(n_drafted=0, n_accept=0, load_ns=None))
    results = load_results(write_results(tmp_path / "r", [record], planned=[record.key, "0" * 24]))
    written = write_charts(results, tmp_path / "plots")
    assert {path.stem for path in written} == {"peak_rss"}
    assert absences(results) == ["unfinished: 1 runs are still to be made"]


def test_no_line_leads_from_one_replayed_text_to_another(tmp_path: Path) -> None:
    made = CorpusLabel(label="synthetic (seed 1)", kind="synthetic", source="synthetic", sha256="a" * 64)
    other = {"corpus": made, "replay_text": TextLabel(label="synthetic, replayed", sha256="b" * 64)}
    records = [
        make_record(make_spec("copying_map", size, **(other if size > 25 else {})), make_measured(9.0 + size))
        for size in (0, 10, 25, 50, 541)
    ]
    results = load_results(write_results(tmp_path / "machine" / "mixed", records))
    assert comparable_sizes(results, {0, 10, 25, 50, 541}) == [[0, 10, 25], [50, 541]]
    chart = CHARTS[0]
    figure = draw(chart, collect(chart, run_rows(results.records), results.variants), results)
    lines = [line.get_xdata() for line in figure.axes[0].lines if line.get_linewidth() == 1.6]
    assert [len(xs) for xs in lines] == [2, 2]
    assert {text.get_text() for text in figure.axes[0].texts} >= {"real text", "synthetic text"}


def test_0_mb_has_its_own_place() -> None:
    place = horizontal_places([0, 25, 50, 541])
    assert place(0) < -0.1 < place(25) == 0 < place(50) < place(541) == 1
    assert horizontal_places([0])(0) < 0
    assert horizontal_places([25])(25) == 0.5


@pytest.mark.parametrize(
    "wanted",
    [[1.0, 1.0, 1.0], [5.0, 4.9, 100.0], [0.0, 0.0], [99.0, 100.0, 98.0, 97.0], [50.0], list(range(6))],
)
def test_labels_never_overlap_and_keep_their_order(wanted: list[float]) -> None:
    places = spread(wanted, 15, 0, 100)
    ordered = sorted(places)
    assert all(b - a >= 15 - 1e-9 for a, b in pairwise(ordered))
    assert ordered[0] >= 0
    assert ordered[-1] <= 100
    order = sorted(range(len(wanted)), key=lambda index: wanted[index])
    assert order == sorted(range(len(places)), key=lambda index: places[index])


def test_figures_read_as_people_write_them() -> None:
    shown = [figure_text(value, " s") for value in (0.01234, 1.5, 65.83, 3751.2, 0.0)]
    assert shown == ["0.0123 s", "1.50 s", "65.8 s", "3,751 s", "0 s"]
