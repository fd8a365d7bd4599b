"""Charts: from records alone, the same bytes every time, nothing drawn that was not measured."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from draft_ladder.base.errors import RunFailedError
from draft_ladder.bench.records import CorpusLabel, Failure, TextLabel
from draft_ladder.bench.settings import Settings
from draft_ladder.bench.stats import Results, load_results, run_rows
from draft_ladder.report.caption import absences, caption
from draft_ladder.report.charts import CHARTS, write_charts
from draft_ladder.report.drawing import comparable, draw, horizontal_places, spread
from draft_ladder.report.pictures.canvas import REPLACED, literal, own_settings
from draft_ladder.report.pictures.position_chart import PositionSeries, counts_text, draw_positions
from draft_ladder.report.series import Chart, Look, Series, collect
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Annotation, Text
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
    assert set(first) == {
        f"{chart.name}.{suffix}" for chart in CHARTS if chart.x == "size_mb" for suffix in ("svg", "png")
    }
    shutil.rmtree(tmp_path / "plots")
    again = {path.name: path.read_bytes() for path in write_charts(load_results(folder), tmp_path / "plots")}
    assert again == first
    assert b"<dc:date>" not in first["draft_latency.svg"]


def test_a_failed_run_is_absent_and_noted(folder: Path) -> None:
    results = load_results(folder)
    series = series_of(results, "draft_latency")
    found = {item.variant: item.xs for item in series}
    assert (found["segmented_map"], found["copying_map"]) == ((0, 25), (0, 25, 541))
    (line,) = absences(results)
    assert "time-out" in line
    assert "segmented_map at 541 MB" in line
    drawn = draw(chart_named("draft_latency"), series, results)
    assert line in [text.get_text() for text in drawn.texts]


def test_the_position_chart_says_what_is_missing(tmp_path: Path) -> None:
    measured = make_measured(drafted_at=[10, 5], accepted_at=[4, 2])
    record = make_record(make_spec("frozen", 25), measured)
    failed = make_record(make_spec("frozen_precheck", 25), None, Failure(reason="killed", detail=""))
    keys = [record.key, failed.key, "0" * 24]
    results = load_results(write_results(tmp_path / "m" / "s", [record, failed], planned=keys))
    words = [text.get_text() for text in positions_of(results).texts]
    lines = absences(results)
    assert len(lines) == 3  # failed, unfinished, and the variant of which nothing is left
    assert set(lines) <= set(words)


def test_series_are_in_ladder_order_with_the_variants_own_style(folder: Path) -> None:
    results = load_results(folder)
    series = series_of(results, "draft_latency")
    assert [item.variant for item in series] == list(STYLE)
    assert [item.look.color for item in series] == [style[3] for style in STYLE.values()]
    assert [item.variant for item in series if item.look.line != "-"] == ["frozen"]


def test_no_load_time_at_0_mb_and_no_speed_up_of_the_first_rung(folder: Path) -> None:
    results = load_results(folder)
    assert all(0 not in item.xs for item in series_of(results, "load_time"))
    relative = {item.variant: item for item in series_of(results, "speedup")}
    assert "copying_map" not in relative
    assert relative["frozen_precheck"].low[1] == pytest.approx(400.75 / 6.25)


def test_the_speed_up_chart_stays_where_an_axis_is_set(tmp_path: Path) -> None:
    records = [
        make_record(make_spec(name, 25, axes={"hash": value}), make_measured(latency * factor))
        for name, latency in (("copying_map", 40.0), ("frozen", 4.0))
        for value, factor in (("xor", 1.0), ("mix", 3.0))
    ]
    records.append(make_record(make_spec("sorted_vectors", 25), make_measured(20.0)))
    results = load_results(write_results(tmp_path / "m" / "axes", records))
    found = {(item.variant, item.settings.get("axes.hash")): item for item in series_of(results, "speedup")}
    assert set(found) == {("frozen", "xor"), ("frozen", "mix"), ("sorted_vectors", None)}
    # Each against the baseline at its own value; a variant without the axis against the first of them.
    assert found["frozen", "xor"].middle == found["frozen", "mix"].middle == [10.0]


def test_series_of_one_variant_differ_to_the_eye(tmp_path: Path) -> None:
    at_place = {"drafted_at": [10, 5], "accepted_at": [4, 2]}
    records = [
        make_record(
            make_spec(name, size, n_draft=n, axes={"hash": value}), make_measured(n * 1.0, **at_place)
        )
        for name in ("copying_map", "frozen")
        for size in (25, 541)
        for n in (3, 16, 1024)
        for value in ("xor", "mix")
    ]
    results = load_results(write_results(tmp_path / "m" / "many", records))
    series = series_of(results, "draft_latency")
    figure = draw(chart_named("draft_latency"), series, results)
    looks = [
        (line.get_color(), line.get_linestyle())
        for axes in figure.axes
        for line in axes.lines
        if line.get_linewidth() == 1.6 and len(line.get_xdata()) == 2
    ]
    assert len(looks) == len(set(looks)) == 12
    colors = [line.get_color() for line in positions_of(results).axes[0].lines]
    assert len(colors) == len(set(colors)) == 12
    # In the order of the numbers.
    lengths = [item.settings["n_draft"] for item in series if item.variant == "frozen"]
    assert lengths == [3, 16, 1024, 3, 16, 1024]


def test_any_metric_against_any_setting_is_one_entry(tmp_path: Path) -> None:
    records = [
        make_record(make_spec(name, size, n_draft=n, axes={"hash": value}), make_measured(n * factor))
        for name, factor in (("copying_map", 4.0), ("frozen", 1.0))
        for size in (25, 541)
        for n in (16, 3, 1024)
        for value in ("xor", "mix")
    ]
    results = load_results(write_results(tmp_path / "m" / "many", records))
    rows = run_rows(results.records)
    by_length = collect(Chart("a", "draft_latency_us", x="n_draft"), rows, results.variants)
    assert {item.xs for item in by_length} == {(3, 16, 1024)}
    assert len(by_length) == 4
    by_hash = collect(Chart("b", "hit_rate", x="axes.hash", relative=True), rows, results.variants)
    assert {item.xs for item in by_hash} == {("mix", "xor")}
    assert {item.variant for item in by_hash} == {"frozen"}
    assert {value for item in by_hash for value in item.middle} == {1.0}
    figure = draw(Chart("b", "hit_rate", x="axes.hash"), by_hash, results)
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == ["mix", "xor"]
    # Between two hashes lies nothing that a line could pass through.
    assert all(len(line.get_xdata()) == 1 for line in figure.axes[0].lines if line.get_linewidth() == 1.6)
    assert "draft_latency_by_n_draft" in {path.stem for path in write_charts(results, tmp_path / "plots")}
    alone = [row for row in rows if row.settings["n_draft"] == 3]
    assert collect(Chart("a", "draft_latency_us", x="n_draft"), alone, results.variants) == []


def chart_named(name: str) -> Chart:
    return next(chart for chart in CHARTS if chart.name == name)


def series_of(results: Results, name: str) -> list[Series]:
    return collect(chart_named(name), run_rows(results.records), results.variants)


def positions_of(results: Results) -> Figure:
    figure = draw_positions(results)
    assert figure is not None
    return figure


def words_of(folder: Path, name: str) -> list[str]:
    """The title and the line below it."""
    results = load_results(folder)
    figure = draw(chart_named(name), series_of(results, name), results)
    return [text.get_text() for text in figure.texts[:2]]


def test_the_title_names_what_the_speed_up_is_over(tmp_path: Path) -> None:
    records = [
        make_record(make_spec(name, 25), make_measured(LATENCY[name]))
        for name in ("sorted_vectors", "frozen_precheck")
    ]
    folder = write_results(tmp_path / "m" / "past", records)
    title, below = words_of(folder, "speedup")
    assert "sorted vectors" in title
    assert "higher is better" in below


def test_counts_are_written_in_full_or_are_a_dash(tmp_path: Path) -> None:
    at_place = {"drafted_at": [1_234_567, 0, 0], "accepted_at": [400, 0, 0]}
    measured = make_measured(n_drafted=1_234_567, draft_calls=0, hit_calls=0, **at_place)
    folder = write_results(tmp_path / "m" / "s", [make_record(make_spec("frozen", 25), measured)])
    figure = draw_positions(load_results(folder))
    assert figure is not None
    legend = figure.axes[0].get_legend()
    assert legend is not None
    (text,) = [text.get_text() for text in legend.get_texts()]
    assert "400 of 1,234,567" in text
    missing = PositionSeries(
        "frozen", Settings(), Look("frozen", "#FF0000", "o", "-"), 25, (0.5,), None, None, None
    )
    assert counts_text(missing) == "- of -, hit rate -"


def test_each_variants_floor_is_said_to_be_its_own(folder: Path) -> None:
    results = load_results(folder)
    drawn = draw(chart_named("above_floor"), series_of(results, "above_floor"), results)
    assert "own file" in drawn.axes[0].get_ylabel()


def test_the_number_of_runs_is_that_of_every_point(tmp_path: Path, folder: Path) -> None:
    assert "2 runs" in words_of(folder, "draft_latency")[1]
    records = [
        make_record(make_spec(name, 25, repeat), make_measured(LATENCY[name]))
        for name, repeats in (("sorted_vectors", 3), ("frozen", 2))
        for repeat in range(repeats)
    ]
    uneven = write_results(tmp_path / "m" / "uneven", records)
    assert "2 to 3 runs" in words_of(uneven, "draft_latency")[1]


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
    (line,) = absences(results)
    assert line.startswith("unfinished: 1 ")


def test_no_line_leads_from_one_replayed_text_to_another(tmp_path: Path) -> None:
    made = CorpusLabel(label="synthetic (seed 1)", kind="synthetic", source="synthetic", sha256="a" * 64)
    other = {"corpus": made, "replay_text": TextLabel(label="synthetic, replayed", sha256="b" * 64)}
    records = [
        make_record(make_spec("copying_map", size, **(other if size > 25 else {})), make_measured(9.0 + size))
        for size in (0, 10, 25, 50, 541)
    ]
    results = load_results(write_results(tmp_path / "machine" / "mixed", records))
    chart = CHARTS[0]
    assert comparable(chart, results, {0, 10, 25, 50, 541}) == [[0, 10, 25], [50, 541]]
    figure = draw(chart, series_of(results, chart.name), results)
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


NAMES = ("cost $x_^ and $y.txt", "a\tb\x07.txt", "\u4e2d\u6587.txt", "\udcff.txt", "{\\frac}%_&#.txt")


@pytest.mark.parametrize("backend", ["module://matplotlib_inline.backend_inline", "nonsense"])
def test_charts_are_drawn_whatever_matplotlib_is_told(tmp_path: Path, backend: str) -> None:
    (tmp_path / "matplotlibrc").write_text("text.usetex: True\naxes.facecolor: red\n")
    records = []
    for size, name in enumerate(NAMES, start=1):
        corpus = CorpusLabel(
            label=name.encode(errors="replace").decode(), kind="real", source="files", sha256="a" * 64
        )
        spec = make_spec(
            "frozen", size, corpus=corpus, replay_text=TextLabel(label=corpus.label, sha256="b" * 64)
        )
        records.append(make_record(spec, make_measured(float(size))))
    folder = write_results(tmp_path / "m" / "s", records)
    code = "from draft_ladder.cli import main; main()"
    found = {}
    for place, more in ((tmp_path, {"MPLBACKEND": backend}), (tmp_path / "m", {})):
        plots = place / "plots"
        done = subprocess.run(
            [sys.executable, "-c", code, "charts", str(folder), "--plots", str(plots)],
            cwd=place,
            env={**os.environ, **more},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        assert "Glyph" not in done.stderr
        found[place] = {path.name: path.read_bytes() for path in plots.rglob("*.*")}
    told, untold = found.values()
    assert told == untold
    assert "draft_latency.png" in told


def test_text_is_literal() -> None:
    assert literal("cost $x_^\n") == "cost $x_^\n"
    assert literal("\x07\udcff") == REPLACED * 2
    assert len(literal("\u4e2d\U0001f600")) == 2
    with own_settings():
        assert not Text(0, 0, "$x$").get_parse_math()


def test_a_chart_that_fails_loses_no_other(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(chart: Chart, *rest: object) -> Figure:
        if chart.name == "load_time":
            raise ValueError("of no use")
        return draw(chart, *rest)  # type: ignore[arg-type]

    whole = {path.name for path in write_charts(load_results(folder), tmp_path / "whole")}
    monkeypatch.setattr("draft_ladder.report.charts.draw", fail)
    failed: list[str] = []
    written = {path.name for path in write_charts(load_results(folder), tmp_path / "plots", failed)}
    assert whole - written == {"load_time.svg", "load_time.png"}
    assert len(failed) == 1
    assert "load_time" in failed[0]
    with pytest.raises(RunFailedError):
        write_charts(load_results(folder), tmp_path / "again")


def crowd(folder: Path, lengths: tuple[int, ...], sizes: tuple[int, ...]) -> Results:
    """Figures that lie close together, of four variants at each of these settings."""
    records = [
        make_record(make_spec(name, size, n_draft=n), make_measured(10.0 + n / 100 + place / 10))
        for place, name in enumerate(("copying_map", "frozen", "sorted_vectors", "segmented_map"))
        for n in lengths
        for size in sizes
    ]
    return load_results(write_results(folder / "m" / "many", records))


def drawn(results: Results, name: str = "draft_latency") -> Figure:
    with own_settings():
        figure = draw(chart_named(name), series_of(results, name), results)
        figure.canvas.draw()
    return figure


def points_of(axes: Axes) -> list[list[float]]:
    return [[float(x) for x in line.get_xdata()] for line in axes.lines if line.get_markersize() == 7.5]


def test_no_leader_crosses_a_label(tmp_path: Path) -> None:
    (axes,) = drawn(crowd(tmp_path, (3, 16), (0, 25, 541))).axes
    labels = [text for text in axes.texts if isinstance(text, Annotation)]
    begin = min(Text.get_window_extent(label).x0 for label in labels)
    assert len(labels) == 8
    for label in labels:
        assert label.arrow_patch is not None
        assert label.arrow_patch.get_window_extent().x1 <= begin + 1


@pytest.mark.parametrize("lengths", [(3, 16), (3, 16, 64, 256, 1024)])
def test_points_stay_inside_the_axes_and_on_their_side_of_the_break(
    tmp_path: Path, lengths: tuple[int, ...]
) -> None:
    place = horizontal_places([0, 25, 541])
    for axes in drawn(crowd(tmp_path, lengths, (0, 25, 541))).axes:
        low, high = axes.get_xlim()
        for xs in points_of(axes):
            assert low < xs[0] < place(0) / 2 < xs[1]
            assert xs[-1] < high


def test_more_than_eight_series_get_a_panel_each_in_numeric_order(tmp_path: Path) -> None:
    figure = drawn(crowd(tmp_path, (1024, 16384, 2048), (25, 541)))
    panels = [axes for axes in figure.axes if axes.axison]
    assert len(panels) == 12
    assert all(len(points_of(axes)) == 1 for axes in panels)
    names = [text.get_text() for axes in panels[:3] for text in axes.texts]
    assert ["=1024]" in names[0], "=2048]" in names[1], "=16384]" in names[2]] == [True] * 3
    box = figure.bbox
    for text in figure.findobj(Text):
        if text.get_text() and text.get_visible():
            extent = text.get_window_extent()  # type: ignore[attr-defined]
            assert extent.x1 <= box.x1


@pytest.mark.parametrize("lengths", [(3,), (3, 16, 64, 256, 1024)])
def test_one_corpus_size_is_a_row_for_each_series(tmp_path: Path, lengths: tuple[int, ...]) -> None:
    results = crowd(tmp_path, lengths, (541,))
    (axes,) = drawn(results).axes
    series = series_of(results, "draft_latency")
    rows = [float(line.get_ydata()[0]) for line in axes.lines if line.get_markersize() == 8.5]
    assert rows == list(range(len(series)))
    labels = [text.get_text() for text in axes.texts]
    assert labels[::2] == [item.look.label for item in series]
    assert axes.get_xlabel().startswith("draft + update")
