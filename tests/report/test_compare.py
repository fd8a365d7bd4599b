"""Two runs side by side: ratios by hand, refusals, and a run as it was in a commit."""

from __future__ import annotations

import json
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest
from draft_ladder.base.errors import InputError
from draft_ladder.bench.records import Failure
from draft_ladder.bench.stats import Results, load_results
from draft_ladder.report.alike import mixed
from draft_ladder.report.caption import absences
from draft_ladder.report.compare import as_table, compare, opened
from draft_ladder.report.judge import check_alike
from sample_records import make_measured, make_record, make_spec, write_results


def write_run(folder: Path, latencies: tuple[float, ...], **changes: Any) -> Path:
    records = [
        make_record(make_spec("frozen", size, repeat, **changes), make_measured(latency))
        for size in (0, 25)
        for repeat, latency in enumerate(latencies)
    ]
    return write_results(folder, records)


def test_ratios_and_overlap_by_hand(tmp_path: Path) -> None:
    a = load_results(write_run(tmp_path / "a", (10.0, 12.0, 14.0)))
    b = load_results(write_run(tmp_path / "b", (5.0, 6.0, 10.0)))
    found = compare(a, b)
    assert found.differences == []
    cells = {(cell.size_mb, cell.metric): cell for cell in found.cells}
    cell = cells[25, "draft_latency_us"]
    assert (cell.a, cell.b, cell.ratio) == (12.0, 6.0, 2.0)
    assert (cell.a_range, cell.b_range, cell.ranges) == ((10.0, 14.0), (5.0, 10.0), "overlap")
    assert cells[25, "peak_rss_mb"].ratio == 1.0
    assert ("frozen", "25", "draft_latency_us", "12", "6", "2.000", "overlap", "too few runs") in as_table(
        found
    ).rows
    apart = compare(a, load_results(write_run(tmp_path / "c", (5.0, 6.0, 9.9))))
    assert next(cell for cell in apart.cells if cell.metric == "draft_latency_us").ranges == "apart"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"n_draft": 8}, "n_draft"),
        ({"n_ctx": 512}, "n_ctx"),
        ({"page_cache": "cold"}, "page_cache"),
        ({"tokens_sha256": "9" * 64}, "tokens"),
    ],
)
def test_unlike_settings_are_refused_unless_told(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    a = load_results(write_run(tmp_path / "a", (10.0,)))
    b = load_results(write_run(tmp_path / "b", (5.0,), **change))
    with pytest.raises(InputError, match=words):
        compare(a, b)
    forced = compare(a, b, force=True)
    assert words in "; ".join(forced.differences)
    # What differs as a whole tells no cells apart.
    assert {(cell.variant, cell.size_mb) for cell in forced.cells} == {("frozen", 0), ("frozen", 25)}


def test_single_figures_are_not_apart(tmp_path: Path) -> None:
    a, b = (load_results(write_run(tmp_path / name, (us,))) for name, us in (("a", 10.0), ("b", 9.0)))
    found = {cell.metric: cell.ranges for cell in compare(a, b).cells}
    assert found["draft_latency_us"] == "one run each"
    assert found["peak_rss_mb"] == "equal"


def test_settings_tell_cells_apart_and_absences_are_noted(tmp_path: Path) -> None:
    def run(name: str, factor: float) -> Results:
        records = [
            make_record(
                make_spec("frozen", 25, n_draft=n, axes={"huge_pages": pages}), make_measured(n * factor)
            )
            for n in (3, 16, 128)
            for pages in ("off", "on")
        ]
        records.append(make_record(make_spec("copying_map"), None, Failure(reason="killed", detail="")))
        return load_results(write_results(tmp_path / name, records))

    found = compare(run("a", 2.0), run("b", 1.0))
    latency = [cell for cell in found.cells if cell.metric == "draft_latency_us"]
    assert [cell.ratio for cell in latency] == [2.0] * 6
    # In the order of their numbers, not of their digits.
    assert [cell.a for cell in latency] == [6.0, 32.0, 256.0] * 2
    assert [note for note in found.notes if "killed" in note]


def test_unlike_machines_and_corpora_are_refused(tmp_path: Path) -> None:
    a = load_results(write_run(tmp_path / "a", (10.0,)))
    other = write_run(tmp_path / "b", (5.0,))
    machine = json.loads((other / "machine.json").read_text())
    (other / "machine.json").write_text(json.dumps({**machine, "cpu_model": "Another"}))
    with pytest.raises(InputError, match="cpu_model"):
        compare(a, load_results(other))
    corpus = make_spec("frozen", 25).corpus.model_copy(update={"sha256": "8" * 64})
    record = make_record(make_spec("frozen", 25, corpus=corpus), make_measured())
    with pytest.raises(InputError, match="25 MB"):
        compare(a, load_results(write_results(tmp_path / "c", [record])))


def built(folder: Path, **build: str) -> Results:
    measured = make_measured(build={"compiler": "gcc 12.2.0", "cxx_flags": "-O3 -march=native", **build})
    return load_results(write_results(folder, [make_record(make_spec("frozen", 25), measured)]))


def test_another_compiler_is_refused_and_other_flags_are_noted(tmp_path: Path) -> None:
    a = built(tmp_path / "a")
    with pytest.raises(InputError, match=r"compiler.*clang 14"):
        compare(a, built(tmp_path / "b", compiler="clang 14"))
    flags = built(tmp_path / "c", cxx_flags="-mno-amx-tile -O3 -march=native")
    assert compare(a, flags).notes == [
        "a and c were built with other compiler flags: c with -mno-amx-tile",
    ]
    assert compare(a, built(tmp_path / "d")).notes == []
    order = compare(a, built(tmp_path / "e", cxx_flags="-march=native -O3")).notes
    assert order == ["a and e were built with other compiler flags: the same in another order"]
    with pytest.raises(InputError, match=r"unordered_dense is 4\.5 and ladder"):
        compare(built(tmp_path / "g", unordered_dense="4.5"), built(tmp_path / "h", unordered_dense="ladder"))
    silent = load_results(
        write_results(tmp_path / "f", [make_record(make_spec("frozen", 25), make_measured(build=None))])
    )
    assert compare(a, silent).differences == []


def test_runs_that_draft_otherwise_are_unlike(tmp_path: Path) -> None:
    a, b = (
        load_results(
            write_results(
                tmp_path / name,
                [make_record(make_spec("frozen", 25), make_measured(digest=name * 64))],
            )
        )
        for name in "ab"
    )
    with pytest.raises(InputError, match=r"draft.*frozen at 25 MB"):
        compare(a, b)
    assert len(compare(a, b, force=True).differences) == 1


@pytest.mark.parametrize("python_has_filters", [True, False], ids=["filters", "no filters"])
def test_a_run_in_a_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, python_has_filters: bool) -> None:
    if not python_has_filters:  # as before Python 3.11.4
        monkeypatch.delattr(tarfile, "data_filter", raising=False)
        extract = tarfile.TarFile.extractall
        monkeypatch.setattr(tarfile.TarFile, "extractall", lambda self, path: extract(self, path))
    write_run(tmp_path / "results" / "m" / "e", (10.0, 12.0))

    def git(*arguments: str) -> None:
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        subprocess.run(["git", *identity, *arguments], cwd=tmp_path, check=True, capture_output=True)

    git("init", "-q")
    git("add", "-A")
    git("commit", "-qm", "A run")
    monkeypatch.chdir(tmp_path)
    with opened("HEAD:results/m/e") as then, opened("results/m/e") as now:
        assert all(cell.ratio == 1.0 for cell in compare(then, now).cells)
    with pytest.raises(InputError, match="git archive"), opened("HEAD:results/none"):
        pass


def test_a_commit_is_never_taken_for_an_option_of_git(tmp_path: Path) -> None:
    target = tmp_path / "written"
    refused = pytest.raises(InputError, match="is no commit")
    with refused, opened(f"--output={target}:results/m/e"):
        pass
    assert not target.exists()


def surrounded(folder: Path, *surroundings: dict[str, Any]) -> Results:
    """A run under each of these conditions."""
    records = [
        make_record(make_spec("frozen", 25, repeat), make_measured(), environment=around)
        for repeat, around in enumerate(surroundings)
    ]
    return load_results(write_results(folder, records))


ARENA = {"allocator_variables": {"MALLOC_ARENA_MAX": "1"}, "kernel": "6.1"}
PLAIN: dict[str, Any] = {"allocator_variables": {}, "kernel": "6.1"}


def test_allocator_settings_are_unlike_conditions(tmp_path: Path) -> None:
    a, b = surrounded(tmp_path / "a", PLAIN), surrounded(tmp_path / "b", ARENA)
    with pytest.raises(InputError, match=r"allocator_variables.*MALLOC_ARENA_MAX"):
        compare(a, b)
    assert compare(a, b, force=True).differences
    # Older records say nothing of them.
    assert compare(a, surrounded(tmp_path / "c", {})).differences == []


def test_unlike_runs_in_one_folder_are_listed_everywhere(tmp_path: Path) -> None:
    other = {**PLAIN, "kernel": "6.2"}
    both, alone = surrounded(tmp_path / "a", PLAIN, PLAIN, other), surrounded(tmp_path / "b", PLAIN)
    (line,) = mixed(both)
    assert "kernel" in line
    assert "6.1 in 2 runs" in line
    assert line in absences(both)
    assert mixed(alone) == []
    with pytest.raises(InputError, match="kernel"):
        compare(both, alone)
    with pytest.raises(InputError, match="kernel"):
        check_alike([both])
    (stale,) = mixed(surrounded(tmp_path / "c", other))
    assert "machine.json" in stale


def test_other_cores_are_noted(tmp_path: Path) -> None:
    a, b = (
        surrounded(tmp_path / name, {**PLAIN, "affinity": on}) for name, on in (("a", [0]), ("b", [0, 1]))
    )
    assert [note for note in compare(a, b).notes if "affinity" in note]


def test_five_runs_each_are_judged_where_their_interval_leaves_one_out(tmp_path: Path) -> None:
    a = load_results(write_run(tmp_path / "a", (10.0, 12.0, 14.0, 11.0, 13.0)))
    b = load_results(write_run(tmp_path / "b", (5.0, 6.0, 7.0, 5.5, 6.5)))
    verdicts = [
        {cell.verdict for cell in compare(*both).cells if cell.metric == "draft_latency_us"}
        for both in ((a, b), (b, a), (a, a))
    ]
    assert verdicts == [{"better"}, {"worse"}, {"not told apart"}]
