"""One variant against another: ratios and words by hand, and the real verb on a small text."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from draft_ladder.base.errors import DraftsDifferError, InputError
from draft_ladder.base.variants import find
from draft_ladder.bench.config import Experiment
from draft_ladder.bench.records import Failure
from draft_ladder.bench.stats import Results, load_results
from draft_ladder.report.ablate import Ratio, experiment_for, ratios, sentence, too_wide, width_line
from draft_ladder.report.pictures.ablate_chart import draw_ratios, write_chart
from runner_kit import real_variants, small_experiment
from sample_records import make_measured, make_record, make_spec, write_results

HISTOGRAM = [[1000, 90], [4000, 9], [64000, 1]]


def results(folder: Path, sorted_us: tuple[float, ...], frozen_us: tuple[float, ...]) -> Path:
    records = [
        make_record(
            make_spec(name, size, repeat), make_measured(latency, load_ns=None if size == 0 else 10**9)
        )
        for size in (0, 541)
        for name, latencies in (("sorted_vectors", sorted_us), ("frozen", frozen_us))
        for repeat, latency in enumerate(latencies)
    ]
    records += [
        make_record(make_spec(name, 541, 0, timing="histogram"), make_measured(histogram=histogram))
        for name, histogram in (("sorted_vectors", HISTOGRAM), ("frozen", [[2000, 100]]))
    ]
    return write_results(folder / "machine" / "sample", records)


def test_ratios_and_their_spread(tmp_path: Path) -> None:
    found = ratios(load_results(results(tmp_path, (10, 12, 14), (5, 6, 8))), ("frozen", "sorted_vectors"))
    latency = [one for one in found if one.metric == "draft_latency_us"]
    assert [(one.size_mb, one.ratio, one.low, one.high, one.ranges) for one in latency] == [
        (0, 2.0, 10 / 8, 14 / 5, "apart"),
        (541, 2.0, 10 / 8, 14 / 5, "apart"),
    ]
    (slowest,) = [one for one in found if one.metric == "draft_call_max_us"]
    assert (slowest.size_mb, slowest.ratio) == (541, 32.0)
    assert [one.size_mb for one in found if one.metric == "load_time_s"] == [541]


NAMES = ("frozen", "sorted_vectors")


def latency(folder: Path, sorted_us: tuple[float, ...], frozen_us: tuple[float, ...]) -> tuple[Ratio, str]:
    """The ratio of the draft latency at 541 MB, and what is said of it."""
    found = ratios(load_results(results(folder, sorted_us, frozen_us)), NAMES)
    (one,) = [one for one in found if (one.metric, one.size_mb) == ("draft_latency_us", 541)]
    text = sentence(found, {"changes": "one array"}, NAMES)
    assert text.startswith("frozen against sorted_vectors: one array. draft latency ")
    return one, text.partition("; ")[0].partition("draft latency ")[2]


def test_five_pairs_that_leave_one_out_are_judged(tmp_path: Path) -> None:
    one, words = latency(tmp_path / "a", (10, 12, 14, 12, 11), (5, 6, 8, 6, 5.5))
    assert (one.n_pairs, one.verdict) == (5, "better")
    assert one.interval == (5, 14 / 8, 2.0)
    assert words == "2.00 times better"
    worse, words = latency(tmp_path / "b", (5, 6, 8, 6, 5.5), (10, 12, 14, 12, 11))
    assert (worse.verdict, words) == ("worse", "2.00 times worse")


@pytest.mark.parametrize(
    ("sorted_us", "frozen_us", "verdict"),
    [
        # As far apart as you like: two runs, or four, say nothing.
        ((13, 15), (10, 10), "too few runs"),
        ((20,) * 4, (10,) * 4, "too few runs"),
        ((20,) * 5, (10,) * 4, "too few runs"),
        # The same code: one pair of five the other way.
        ((10, 12, 13, 12, 9), (9, 10, 11, 10, 10), "not told apart"),
        ((10,) * 7, (10,) * 7, "not told apart"),
    ],
)
def test_without_evidence_no_sentence_says_better_or_worse(
    tmp_path: Path, sorted_us: tuple[float, ...], frozen_us: tuple[float, ...], verdict: str
) -> None:
    one, words = latency(tmp_path, sorted_us, frozen_us)
    assert one.verdict == verdict
    assert "better" not in words
    assert "worse" not in words
    assert (one.interval.low is None) == (verdict == "too few runs")


def test_runs_of_the_same_round_are_pairs(tmp_path: Path) -> None:
    """A machine that slows down in the third round slows both."""
    one, _ = latency(tmp_path, (10, 11, 40, 12, 10, 11), (9, 9.9, 36, 10.8, 9, 9.9))
    assert one.verdict == "better"
    assert one.interval.is_narrow(0.01)
    assert one.ranges == "overlap"


def test_which_intervals_are_wide(tmp_path: Path) -> None:
    found = ratios(load_results(results(tmp_path, (10, 12, 14, 12, 11), (5, 6, 8, 6, 5.5))), NAMES)
    wide = {(one.metric, one.size_mb) for one in too_wide(found, 0.05)}
    assert wide == {("draft_latency_us", 0), ("draft_latency_us", 541)}
    assert too_wide(found, 0.5) == []
    assert width_line(found, 0.5) == ""
    assert "0, 541 MB" in width_line(found, 0.05)


def test_the_chart_is_drawn_the_same_twice(tmp_path: Path) -> None:
    names = ("frozen", "sorted_vectors")
    found = load_results(results(tmp_path, (10, 12, 14), (5, 6, 8)))
    first = write_chart(ratios(found, names), found, names, tmp_path / "one")
    second = write_chart(ratios(found, names), found, names, tmp_path / "two")
    assert [path.name for path in first] == ["frozen.svg", "frozen.png"]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_the_experiment_is_the_pair_with_a_histogram_pass() -> None:
    real_variants()
    made = experiment_for(small_experiment(), find("sorted_lower_bound"))
    assert made.variants == ("sorted_vectors", "sorted_lower_bound")
    assert (made.name, made.histogram_repeats) == ("small-sorted_lower_bound", 1)
    with pytest.raises(InputError, match="versus"):
        experiment_for(small_experiment(), find("copying_map"))


def test_folders_without_the_pair_are_refused(tmp_path: Path) -> None:
    folder = write_results(tmp_path / "m" / "s", [make_record(make_spec("frozen"), make_measured())])
    with pytest.raises(InputError, match="sorted_vectors and frozen"):
        ratios(load_results(folder), ("frozen", "sorted_vectors"))


def test_records_that_the_runner_marked_are_refused_as_such(tmp_path: Path) -> None:
    spec = make_spec("frozen", 541, 3)
    failure = Failure(reason="drafts differ", detail="")
    marked = make_record(spec, make_measured(digest="b" * 64), failure, draft_check="differ")
    others = [make_record(make_spec(name, 541), make_measured()) for name in ("sorted_vectors", "frozen")]
    folder = load_results(write_results(tmp_path / "m" / "s", [*others, marked]))
    with pytest.raises(DraftsDifferError) as caught:
        ratios(folder, ("frozen", "sorted_vectors"))
    assert caught.value.exit_code == 3


def at_settings(folder: Path) -> Results:
    """Three draft lengths and, of the variant that has it, two values of an axis."""
    cells = [("sorted_vectors", {}, 12.0), ("frozen", {"hash": "xor"}, 6.0), ("frozen", {"hash": "mix"}, 4.0)]
    records = [
        make_record(make_spec(name, 541, axes=axes, n_draft=n), make_measured(latency * n))
        for name, axes, latency in cells
        for n in (1, 3)
    ]
    return load_results(write_results(folder / "machine" / "sample", records))


def test_settings_choose_among_records(tmp_path: Path) -> None:
    found, names = at_settings(tmp_path), ("frozen", "sorted_vectors")
    chosen = ratios(found, names, {"axes.hash": "xor", "n_draft": 3})
    (latency,) = [one for one in chosen if one.metric == "draft_latency_us"]
    assert (latency.versus, latency.variant, latency.ratio) == (36.0, 18.0, 2.0)
    assert latency.ranges == "one run each"
    with pytest.raises(InputError, match=r"axes\.hash"):
        ratios(found, names, {"n_draft": 3})
    with pytest.raises(InputError, match="n_draft"):
        ratios(found, names, {"axes.hash": "xor"})
    with pytest.raises(InputError, match="repeats"):
        ratios(found, names, {"repeats": 3})


def test_the_chart_says_what_failed_and_what_is_missing(tmp_path: Path) -> None:
    names = ("frozen", "sorted_vectors")
    records = [make_record(make_spec(name, 541), make_measured()) for name in names]
    records.append(make_record(make_spec("frozen", 25), None, Failure(reason="killed", detail="")))
    planned = [*(record.key for record in records), "0" * 24]
    found = load_results(write_results(tmp_path / "m" / "s", records, planned=planned))
    drawn = draw_ratios(ratios(found, names), found, names)
    words = [text.get_text() for text in drawn.texts]
    assert [word for word in words if "killed" in word]
    assert [word for word in words if word.startswith("unfinished")]


def ladder(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    code = "from draft_ladder.cli import main; main()"
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=folder, env=environment, capture_output=True, text=True
    )


def test_the_verb_measures_charts_and_says(tmp_path: Path) -> None:
    real_variants()
    text = tmp_path / "text"
    text.mkdir()
    words = ["the", "cat", "sat", "on", "the", "mat", "and", "the", "dog", "by", "the", "log"]
    lines = [" ".join(words[(i * j) % 12] for j in range(40)) for i in range(2500)]
    (text / "train.txt").write_text("\n".join(lines) + "\n")
    (text / "replay.txt").write_text("\n".join(lines[:200]) + "\n")
    config = tmp_path / "small.toml"
    config.write_text(
        'name = "small"\nsizes_mb = [0, 0.2]\nn_ctx = 512\nrepeats = 2\nvariants = ["frozen"]\n'
        f'[corpus]\nsource = "files"\nlabel = "cats"\n'
        f'train = ["{text}/train.txt"]\nreplay = ["{text}/replay.txt"]\n'
    )
    options = ("--config", "small.toml", "--cache-dir", "cache", "--machine", "here")
    rounds = ("--width", "0", "--max-repeats", "6")
    done = ladder(tmp_path, "ablate", "unsorted_vectors", *options, *rounds, "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    # No interval of a time is a point: it went on to the last round, and says so.
    assert {one["n_pairs"] for one in answer["ratios"] if one["metric"] == "draft_latency_us"} == {6}
    assert "draft latency" in answer["not_narrow"]
    assert answer["sentence"].startswith(
        "unsorted_vectors against sorted_vectors: successors stay in the order"
    )
    assert {one["size_mb"] for one in answer["ratios"]} == {0, 0.2}
    # The config's name is in both folders: another config's run leaves them alone.
    assert (tmp_path / "plots/here/small-unsorted_vectors/unsorted_vectors.svg").is_file()
    folder = "results/here/small-unsorted_vectors"
    again = ladder(tmp_path, "ablate", "unsorted_vectors", "--from", folder, "--width", "0", "--json")
    assert json.loads(again.stdout) == answer
    stats = ladder(tmp_path, "stats", folder)
    assert "p99.9" in stats.stdout
    wide = ("--width", "1000")
    at_axis = ladder(tmp_path, "ablate", "dense_map", *options, *wide, "--set", "axes.hash=xor", "--json")
    assert at_axis.returncode == 0, at_axis.stderr
    assert {one["size_mb"] for one in json.loads(at_axis.stdout)["ratios"]} == {0, 0.2}
    few = [one for one in json.loads(at_axis.stdout)["ratios"] if one["metric"] == "draft_latency_us"]
    assert {one["n_pairs"] for one in few} == {5}
    chosen = (*wide, "--from", "results/here/small-dense_map", "--set", "axes.hash=xor", "--json")
    assert ladder(tmp_path, "ablate", "dense_map", *chosen).stdout == at_axis.stdout


def test_a_variant_that_changes_nothing_is_refused_with_records_too(tmp_path: Path) -> None:
    real_variants()
    folder = results(tmp_path, (10,), (5,))
    done = ladder(tmp_path, "ablate", "copying_map", "--from", str(folder))
    assert done.returncode == 2
    assert "variant copying_map: its variant.toml names no `versus`" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("change", [{"n_draft": [1, 3]}, {"page_cache": ["warm", "cold"]}])
def test_an_ablation_at_several_settings_is_refused_before_it_is_measured(change: dict[str, Any]) -> None:
    base = Experiment.model_validate({**small_experiment().model_dump(), **change})
    with pytest.raises(InputError, match=f"{next(iter(change))}: has several values"):
        experiment_for(base, find("sorted_lower_bound"))
