"""Claims: the verdict rule at its edges, every kind of claim by hand, and the article's own file."""

from __future__ import annotations

import json
import os
import tomllib
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from draft_ladder.base.errors import DraftsDifferError, InputError
from draft_ladder.bench.records import Failure
from draft_ladder.bench.stats import load_results
from draft_ladder.report.claims import Claim, ClaimsFile, load_claims
from draft_ladder.report.claims_page import as_page, explanations, notes_of
from draft_ladder.report.judge import (
    VERDICTS,
    Evidence,
    Judged,
    article_text,
    judge,
    judge_one,
    verdict_of,
)
from golden_data import shared_folder
from sample_records import make_measured, make_record, make_spec, write_results

ROOT = Path(__file__).parents[2]
ARTICLE = ROOT / "configs" / "claims" / "article.toml"
STATISTICS = {"25": {"n_pairs": 1_000_000, "single_share": 0.62, "at_most_100_share": 0.993}}


def claim(**changes: Any) -> Claim:
    fields: dict[str, Any] = {
        "id": "x",
        "says": "it is faster",
        "metric": "draft_latency",
        "variant": "frozen",
        "versus": "copying_map",
    }
    return Claim(**{**fields, **changes})


@pytest.mark.parametrize(
    ("changes", "low", "median", "high", "verdict"),
    [
        # ratio: overlap with the range widened by 10 %, or above it
        ({"ratio": (2.0, 3.0)}, 1.0, 1.5, 1.79, "direction only"),
        ({"ratio": (2.0, 3.0)}, 1.0, 1.5, 1.81, "reproduced"),
        ({"ratio": (2.0, 3.0)}, 3.2, 3.2, 3.2, "reproduced"),
        ({"ratio": (2.0, 3.0)}, 9.0, 9.0, 9.0, "reproduced"),
        ({"ratio": (2.0, 3.0)}, 0.8, 0.9, 1.2, "not reproduced"),
        # a pair of absolute figures is the ratio of the pair
        ({"absolute_us": (100.0, 10.0)}, 9.1, 9.1, 9.1, "reproduced"),
        ({"absolute_us": (100.0, 10.0)}, 8.9, 8.9, 8.9, "direction only"),
        # up to: the highest counts
        ({"ratio_max": 40.0}, 1.0, 5.0, 36.0, "reproduced"),
        ({"ratio_max": 40.0}, 1.0, 5.0, 35.9, "direction only"),
        ({"ratio_max": 40.0}, 0.5, 0.7, 0.9, "not reproduced"),
        # a warning: only if ours is worse
        ({"ratio": (0.89, 0.89), "warning": True}, 0.5, 0.7, 0.99, "reproduced"),
        ({"ratio": (0.89, 0.89), "warning": True}, 0.5, 0.7, 1.01, "direction only"),
        ({"ratio": (0.89, 0.89), "warning": True}, 0.9, 1.1, 1.2, "not reproduced"),
        # a slowdown reproduces no improvement, though the widened range reaches below 1
        ({"ratio": (1.02, 1.13)}, 0.8, 0.9, 0.93, "not reproduced"),
        ({"ratio": (1.02, 1.13)}, 0.8, 0.95, 1.2, "not reproduced"),
        ({"ratio": (1.02, 1.13)}, 0.8, 1.01, 1.2, "reproduced"),
        ({"ratio": (0.95, 1.13)}, 0.8, 0.9, 0.93, "reproduced"),
        ({"absolute_us": (10.0, 9.8)}, 0.95, 0.95, 0.95, "not reproduced"),
        ({"ratio_max": 1.05}, 0.8, 0.9, 0.96, "not reproduced"),
        # no change: both ends of the widened range count, and there is no direction
        ({"ratio": (0.9, 1.1), "unchanged": True}, 1.2, 1.3, 1.4, "reproduced"),
        ({"ratio": (0.9, 1.1), "unchanged": True}, 0.6, 0.7, 0.82, "reproduced"),
        ({"ratio": (0.9, 1.1), "unchanged": True}, 1.88, 2.0, 2.21, "not reproduced"),
        ({"ratio": (0.9, 1.1), "unchanged": True}, 0.5, 0.5, 0.5, "not reproduced"),
    ],
)
def test_the_rule(changes: dict[str, Any], low: float, median: float, high: float, verdict: str) -> None:
    assert verdict_of(claim(**changes), low, median, high) == verdict


@pytest.fixture
def evidence(tmp_path: Path) -> Evidence:
    """copying_map 40 µs, frozen 10 and 4 µs; 40 % and 40.4 % accepted."""
    records = []
    for size, latency in ((0, 10.0), (25, 4.0)):
        for repeat in range(3):
            records.append(make_record(make_spec("copying_map", size, repeat), make_measured(40.0 + repeat)))
            frozen = make_measured(latency, n_accept=404, load_ns=500_000_000, static_bytes=19_000_000)
            records.append(make_record(make_spec("frozen", size, repeat), frozen))
    folder = write_results(tmp_path / "m" / "sample", records)
    content = json.loads((folder / "experiment.json").read_text())
    (folder / "experiment.json").write_text(json.dumps({**content, "corpus_statistics": STATISTICS}))
    return Evidence([load_results(folder)])


def test_a_ratio_over_the_sizes(evidence: Evidence) -> None:
    found = judge_one(claim(ratio=[4.0, 5.0]), evidence)
    assert found.figures == {"0": 4.1, "25": 10.25}
    assert (found.low, found.median, found.high) == (4.1, pytest.approx(7.175), 10.25)
    assert found.ours == "7.17 (4.1 to 10.2)"
    assert judge_one(claim(ratio=[4.0, 5.0], static=True), evidence).figures == {"25": 10.25}
    one = judge_one(claim(absolute_us=[100.0, 10.0], size_mb=0), evidence)
    assert (one.article, one.ours) == ("10: 100 to 10 µs", "4.1: 41 to 10 µs")
    assert one.verdict == "direction only"


def test_two_metrics_in_one_claim(evidence: Evidence) -> None:
    found = judge_one(claim(metric="load_time and peak_rss", ratio=[0.9, 1.1]), evidence)
    assert found.figures == {"0 load_time": 4.0, "25 load_time": 4.0, "0 peak_rss": 1.0, "25 peak_rss": 1.0}
    assert found.verdict == "reproduced"
    # Memory is as it was, loading is not: over both the range would overlap.
    same = claim(metric="load_time and peak_rss", ratio=[0.9, 1.1], unchanged=True)
    assert judge_one(same, evidence).verdict == "not reproduced"
    assert (
        judge_one(claim(metric="peak_rss", ratio=[0.9, 1.1], unchanged=True), evidence).verdict
        == "reproduced"
    )


def test_acceptance_near_and_equal(evidence: Evidence) -> None:
    near = claim(metric="acceptance", variant=None, versus=None)
    found = judge_one(near, evidence)
    assert (found.verdict, found.median) == ("reproduced", pytest.approx(0.004))
    equal = judge_one(claim(metric="acceptance"), evidence)
    assert equal.verdict == "not reproduced"


def test_sizes_shares_and_rounds(evidence: Evidence, tmp_path: Path) -> None:
    memory = judge_one(claim(metric="static_bytes", size_mb=25, absolute_mb=463), evidence)
    assert (memory.verdict, memory.ours) == (
        "direction only",
        "19 MB, 19 bytes per (bigram, successor) pair",
    )
    disk = claim(metric="static_file_bytes", size_mb=25, absolute_mb=467, file_over_memory=467 / 463)
    # A file of 20 MB adds 28 to the process, whatever the variant counts itself; the other run adds 20.
    apart = judge_one(disk, evidence)
    assert (apart.verdict, "file over resident memory 0.7143" in apart.ours) == ("not reproduced", True)
    alike = make_record(make_spec("frozen", 25), make_measured(loaded_rss_bytes=32_000_000))
    near = Evidence([load_results(write_results(tmp_path / "near", [alike]))])
    assert judge_one(disk, near).verdict == "reproduced"
    unknown = make_record(make_spec("frozen", 25), make_measured(loaded_rss_bytes=None))
    nothing = Evidence([load_results(write_results(tmp_path / "nothing", [unknown]))])
    assert judge_one(disk, nothing).verdict == "not measured"
    share = {"metric": "corpus_statistics", "size_mb": 25, "variant": None, "versus": None}
    assert judge_one(claim(**share, share=0.64), evidence).verdict == "reproduced"
    assert judge_one(claim(**share, share=0.9), evidence).verdict == "direction only"
    assert judge_one(claim(**share, share_min=0.99), evidence).verdict == "reproduced"
    assert judge_one(claim(**share, share_min=0.999), evidence).verdict == "not reproduced"
    rounds = claim(metric="unit_test", variant=None, versus=None)
    assert judge_one(rounds, evidence).verdict == "not measured"
    one = {"compiler": "g++", "rounds_of_eight": 3, "backward_branches": 1, "conditional_moves": 1}
    path = tmp_path / "m" / "sample" / "search_rounds.json"
    path.write_text(json.dumps({"compilers": [{**one, "fixed": True}]}))
    assert judge_one(rounds, evidence).verdict == "reproduced"
    path.write_text(json.dumps({"compilers": [{**one, "fixed": True}, {**one, "fixed": False}]}))
    assert judge_one(rounds, evidence).verdict == "not reproduced"


def test_what_no_record_shows_is_not_measured(evidence: Evidence) -> None:
    for changes in (
        {"variant": "dense_map", "ratio": [1, 2]},
        {"size_mb": 541, "ratio": [1, 2]},
        {"metric": "static_bytes", "size_mb": 541, "absolute_mb": 463},
        {"metric": "corpus_statistics", "size_mb": 541, "share": 0.5},
    ):
        assert judge_one(claim(**changes), evidence).verdict == "not measured"


def test_folders_are_combined_only_if_alike(tmp_path: Path) -> None:
    def folder(name: str, variant: str, **changes: Any) -> Path:
        records = [make_record(make_spec(variant, 25, 0, **changes), make_measured(10.0))]
        return write_results(tmp_path / name, records)

    file = ClaimsFile(source="", machine="", claim=(claim(ratio=[1, 1]),))
    a, b = load_results(folder("a", "frozen")), load_results(folder("b", "copying_map"))
    (found,) = judge(file, [a, b])
    assert found.figures == {"25": 1.0}
    with pytest.raises(InputError, match="n_draft"):
        judge(file, [a, load_results(folder("c", "copying_map", n_draft=8))])
    others = {"compiler": "clang 14", "cxx_flags": "-O2 -march=native"}
    for name, key in (("d", "compiler"), ("e", "cxx_flags")):
        build = {**make_measured()["build"], key: others[key]}
        record = make_record(make_spec("copying_map", 25), make_measured(10.0, build=build))
        write_results(tmp_path / name, [record])
    with pytest.raises(InputError, match=r"compiler"):
        judge(file, [a, load_results(tmp_path / "d")])
    drafts = make_record(make_spec("frozen_precheck", 25), make_measured(10.0, digest="b" * 64))
    with pytest.raises(DraftsDifferError, match=r"frozen at 25 MB.*frozen_precheck"):
        judge(file, [a, load_results(write_results(tmp_path / "f", [drafts]))])
    flags = [a, load_results(tmp_path / "e")]
    (line,) = notes_of(flags)
    assert all(flag in line for flag in ("-O3", "-O2"))
    assert line[1:] in as_page(file, judge(file, flags), flags)


def test_what_no_claim_is_judged_by_is_said(tmp_path: Path) -> None:
    records = [
        make_record(make_spec("frozen", 25), make_measured(10.0)),
        make_record(make_spec("frozen", 25, axes={"huge_pages": "on"}), make_measured(1.0)),
        make_record(make_spec("copying_map", 25), None, Failure(reason="time-out", detail="")),
    ]
    keys = [*(record.key for record in records), "0" * 24]
    folder = load_results(write_results(tmp_path / "a", records, planned=keys))
    assert Evidence([folder]).value("frozen", 25, "draft_latency_us") == 10.0
    text = "\n".join(notes_of([folder]))
    for part in ("time-out", "copying_map", "1 runs", "frozen[huge_pages=on]"):
        assert part in text
    both = [make_record(make_spec("frozen", 25, n_draft=n), make_measured(10.0)) for n in (3, 16)]
    file = ClaimsFile(source="", machine="", claim=(claim(ratio=[1, 1]),))
    with pytest.raises(InputError, match="n_draft"):
        judge(file, [load_results(write_results(tmp_path / "b", both))])


def test_equal_acceptance_is_called_equal(tmp_path: Path) -> None:
    records = [make_record(make_spec(name, 25), make_measured()) for name in ("copying_map", "frozen")]
    found = judge_one(
        claim(metric="acceptance"), Evidence([load_results(write_results(tmp_path / "a", records))])
    )
    assert (found.verdict, found.median) == ("reproduced", 0)
    assert "apart" not in found.ours


def test_a_claim_of_an_unknown_metric_names_those_there_are() -> None:
    with pytest.raises(ValueError, match=r"speed.*draft_latency.*static_bytes"):
        claim(metric="draft_latency and speed", ratio=[1, 2])


def test_a_mistake_in_the_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "claims.toml"
    text = 'source = "s"\nmachine = "m"\n[[claim]]\nid = "x"\nsays = "y"\nmetric = "acceptance"\n'
    path.write_text(text + "speed = 3\n")
    with pytest.raises(InputError, match=r"claims\.toml: claim\.x\.speed: "):
        load_claims(path)
    path.write_text(text + text.partition('"m"\n')[2])
    with pytest.raises(InputError, match="claim x"):
        load_claims(path)
    with pytest.raises(InputError, match=r"none\.toml"):
        load_claims(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ('metric = "load_time"\nvariant = "a"\nversus = "b"', "has no range: give one of"),
        ('metric = "load_time"\nvariant = "a"\nratio = [1, 2]', "needs `variant` and `versus`"),
        (
            'metric = "load_time"\nvariant = "a"\nversus = "b"\nratio = [1, 2]\nratio_max = 3',
            "has ratio and ratio_max",
        ),
        (
            'metric = "draft_latency"\nvariant = "a"\nversus = "b"\nabsolute_us = [1, 0]',
            "`absolute_us` holds two numbers above 0",
        ),
        ('metric = "peak_rss"\nvariant = "a"\nversus = "b"\nratio_max = 0', "`ratio_max` must be a number"),
        ('metric = "peak_rss"\nvariant = "a"\nversus = "b"\nratio = [2, 3]\nunchanged = true', "around 1"),
        ('metric = "acceptance"\nour_reading = true', "there is none"),
        ('metric = "corpus_statistics"\nshare = 0.5', "needs `size_mb`"),
        ('metric = "corpus_statistics"\nsize_mb = 25', "`share` or `share_min`"),
        ('metric = "static_bytes"\nvariant = "a"', "static_bytes needs `variant` and `size_mb`"),
        (
            'metric = "static_file_bytes"\nvariant = "a"\nsize_mb = 1\nfile_over_memory = 0',
            "`file_over_memory` must be a number",
        ),
    ],
)
def test_a_claim_that_cannot_be_judged_is_named(tmp_path: Path, lines: str, words: str) -> None:
    path = tmp_path / "claims.toml"
    path.write_text(f'source = "s"\nmachine = "m"\n[[claim]]\nid = "mine"\nsays = "y"\n{lines}\n')
    with pytest.raises(InputError, match=r"claims\.toml: claim\.mine: ") as caught:
        load_claims(path)
    assert words in str(caught.value)
    assert "Value error" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_is_no_claim_is_named(tmp_path: Path) -> None:
    path = tmp_path / "claims.toml"
    path.write_text('source = "s"\nmachine = "m"\nclaim = [1]\n')
    with pytest.raises(InputError, match=r"claims\.toml: claim"):
        load_claims(path)


def test_words_stand_for_a_figure_only_where_the_claim_says_so() -> None:
    fields = {"ratio": (0.9, 1.1), "note": "no figure is given for the copy"}
    assert article_text(claim(**fields)) == "0.9 to 1.1"
    assert article_text(claim(**fields, our_reading=True)) == "no figure is given for the copy"
    assert article_text(claim(warning=True, note="too slow")) == "too slow"


def test_the_articles_claims_are_all_there_and_unchanged() -> None:
    """Our file adds words to the specification's; it takes no claim away and changes no figure."""
    source = Path(os.environ.get("LADDER_SHARED", shared_folder())) / "spec" / "claims.toml"
    if not source.is_file():
        pytest.skip(f"no {source.name} beside the checkout")
    wanted = tomllib.loads(source.read_text())["claim"]
    found = {one.id: one.model_dump() for one in load_claims(ARTICLE).claim}
    assert list(found) == [one["id"] for one in wanted]
    for one in wanted:
        for key, value in one.items():
            if key != "note":
                got = found[one["id"]][key]
                assert (list(got) if isinstance(got, tuple) else got) == value, (one["id"], key)


COMMITTED = sorted(ROOT.glob("results/*/reference/experiment.json"))


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.parents[1].name)
def test_the_committed_runs_give_every_claim_a_verdict_and_a_reason(path: Path) -> None:
    folders = [path.parents[1] / name for name in ("reference", "ablation", "tail")]
    absent = [folder.name for folder in folders if not folder.is_dir()]
    if absent:
        pytest.skip(f"no committed run {', '.join(absent)}")
    claims = load_claims(ARTICLE)
    judged = judge(claims, [load_results(folder) for folder in folders])
    assert [one.claim.id for one in judged if one.verdict == "not measured"] == []
    assert [name for name, why in explanations(judged) if why == "not explained yet"] == []
    if path.parents[1].name == "amd-epyc-2c-linux":
        counts = [sum(one.verdict == name for one in judged) for name in VERDICTS]
        words = "Of {}, {} are reproduced here, {} in direction only, {} not (".format(len(judged), *counts)
        assert words in " ".join((ROOT / "README.md").read_text().split())
    text = as_page(claims, judged, [load_results(folder) for folder in folders])
    assert all(f"| {one.claim.id} |" in text for one in judged)


def test_what_explanations_take_from_the_records_is_in_them() -> None:
    """Figures of experiments made once stand as they are; these follow the committed records to the digit."""
    machine = ROOT / "results" / "amd-epyc-2c-linux"
    if not (machine / "reference").is_dir() or not (machine / "tail").is_dir():
        pytest.skip("no committed reference and tail run")
    evidence = Evidence([load_results(machine / "reference")])
    tail = Evidence([load_results(machine / "tail")])

    def value(variant: str, size: float, metric: str = "draft_latency_us") -> float:
        found = evidence.value(variant, size, metric)
        assert found is not None
        return found

    rungs = (
        "copying_map",
        "reference_access",
        "segmented_map",
        "sorted_vectors",
        "frozen",
        "frozen_precheck",
    )
    full = {name: value(name, 541) for name in rungs}
    by, seg, vec, fro, pre = (full[a] / full[b] for a, b in pairwise(rungs))
    four, five = full["copying_map"] / full["frozen"], full["copying_map"] / full["frozen_precheck"]
    static = [size for size in evidence.sizes() if size > 0]
    vectors = sorted(value("segmented_map", size) / value("sorted_vectors", size) for size in static)
    draft = {size: [value(name, size, "draft_us") for name in rungs[-2:]] for size in evidence.sizes()}
    gains = {size: pair[0] / pair[1] for size, pair in draft.items()}
    whole = {size: value("frozen", size) / value("frozen_precheck", size) for size in evidence.sizes()}
    updates = sorted(value(name, size, "update_us") for name in rungs[-2:] for size in static)
    grown = [
        value(name, 541, "loaded_rss_mb") - value(name, 541, "baseline_rss_mb")
        for name in ("sorted_vectors", "segmented_map")
    ]
    load = {name: value(name, 541, "load_time_s") for name in ("sorted_vectors", "frozen")}
    phrases = [
        (
            "reference-full-us",
            f"{full['copying_map'] / 165.48:.1f} times what it costs there "
            f"({full['copying_map']:.0f} to 165 µs)",
        ),
        (
            "reference-full-us",
            f"by reference {full['reference_access'] / 6.47:.1f} times "
            f"({full['reference_access']:.1f} to 6.47 µs)",
        ),
        ("lower-bound-draft", f"sorted-draft-static: {vectors[0]:.2f} to {vectors[-1]:.2f} where"),
        (
            "unsorted-tail",
            f"unsorted vectors take {tail.value('unsorted_vectors', 0, 'draft_latency_us'):.2f} µs "
            f"per drafted token to {tail.value('sorted_vectors', 0, 'draft_latency_us'):.2f}",
        ),
        ("sorted-load", f"{grown[0]:,.0f} MB resident to {grown[1]:,.0f} at 541 MB"),
        ("frozen-load-full", f"one read of 520 MB into fresh memory: {load['frozen']:.2f} s"),
        ("frozen-load-full", f"faster here than there, {load['sorted_vectors']:.2f} s to 3.76"),
        ("frozen-size-memory", f"of the {value('frozen', 541, 'static_mb'):.0f} MB"),
        (
            "precheck-static",
            f"gains {gains[25]:.2f} at 25 MB, {gains[200]:.2f} at 200 and {gains[541]:.2f} at 541; "
            f"the update, {updates[0]:.2f} to {updates[-1]:.2f} µs",
        ),
        ("precheck-static", f"makes {whole[25]:.2f}, {whole[200]:.2f} and {whole[541]:.2f} of it"),
        (
            "precheck-no-static",
            f"gains {gains[0]:.2f} ({draft[0][0]:.2f} to {draft[0][1]:.2f} µs per drafted token); "
            f"the update, {value('frozen_precheck', 0, 'update_us'):.2f} µs",
        ),
        ("precheck-no-static", f"makes {whole[0]:.2f} of it"),
        ("cumulative-four", f"{by:.2f} x {seg:.2f} x {vec:.2f} x {fro:.2f} = {four:.1f}"),
        ("cumulative-four", f"falls short: {by:.2f} where"),
        ("cumulative-four", f"gives a part back: {vec:.2f} where"),
        ("cumulative-four", f"Segmented, {seg:.2f}, is as in the article; frozen, {fro:.2f}, stays"),
        ("cumulative-five", f"the precheck's {pre:.2f} at 541 MB"),
        ("cumulative-five", f"{four:.1f} x {pre:.2f} = {five:.0f}"),
        (
            "cumulative-five",
            f"it would be {five * 25.6 / by:.0f}, with its 1.25 for the sorted rung as well "
            f"{five * 25.6 / by * 1.25 / vec:.0f}",
        ),
    ]
    texts = {one.id: " ".join((one.explanation + one.remark).split()) for one in load_claims(ARTICLE).claim}
    assert [(name, phrase) for name, phrase in phrases if phrase not in texts[name]] == []


def test_only_what_is_not_reproduced_is_explained() -> None:
    one = claim(ratio=[1, 1], explanation="because")
    assert Judged(one, "", "reproduced").explanation == ""
    assert Judged(one, "", "direction only").explanation == "because"
    assert Judged(claim(ratio=[1, 1]), "", "not measured").explanation == "not explained yet"
