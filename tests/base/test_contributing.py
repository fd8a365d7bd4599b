"""docs/contributing.md is true: each addition it names is made on a copy of the project, and works there."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest
from draft_ladder.base.errors import ExitCode, InputError
from draft_ladder.base.variants import Variant, discover
from draft_ladder.bench.records import load_records
from draft_ladder.bench.runner import run_experiment
from draft_ladder.cli.new_verb import new_variant
from draft_ladder.studies.instructions import build, write_inputs
from runner_kit import Watcher, small_experiment, small_inputs, small_plan, variant_root
from sample_records import make_measured, make_record, make_spec, write_results

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "contributing.md"
MAX_FILES = {
    "a container variant": 3,
    "a rule": 3,
    "a Python peer": 2,
    "a metric": 2,  # one place and its test
    "a chart": 1,
    "a text source": 2,
}
# The copy's package and the built modules, past the finder of an editable install.
START = """
import sys
sys.meta_path[:] = [finder for finder in sys.meta_path if "ScikitBuild" not in type(finder).__name__]
sys.path[:0] = {folders!r}
sys.argv[:] = {arguments!r}
import draft_ladder
assert draft_ladder.__file__.startswith({folders!r}[0])
"""
needs_compiler = pytest.mark.skipif(
    shutil.which("cmake") is None or shutil.which("g++") is None, reason="needs cmake and g++"
)


class Copy:
    """The tracked files in a folder of their own; `touched` is what was added or changed since."""

    def __init__(self, root: Path) -> None:
        self.root = root
        listed = subprocess.run(
            ["git", "-C", str(ROOT), "ls-files", "-z", "--", ":!results", ":!plots"], capture_output=True
        )
        if listed.returncode != 0:
            pytest.skip("needs a checkout: there is no list of tracked files")
        self.names = [name for name in listed.stdout.decode().split("\0") if (ROOT / name).is_file()]
        for name in self.names:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, root / name)

    @property
    def touched(self) -> set[str]:
        found = {
            path.relative_to(self.root).as_posix()
            for path in self.root.rglob("*")
            if path.is_file() and "__pycache__" not in path.parts and ".pytest_cache" not in path.parts
        }
        return {
            name
            for name in found | set(self.names)
            if name not in self.names or (self.root / name).read_bytes() != (ROOT / name).read_bytes()
        }

    def add(self, name: str, text: str) -> None:
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_text(text)

    def edit(self, name: str, old: str, new: str) -> None:
        text = (self.root / name).read_text()
        assert text.count(old) == 1, f"{name}: {old!r} is there {text.count(old)} times"
        (self.root / name).write_text(text.replace(old, new))

    def variant(self, source: str, target: str, *renamed: tuple[str, str]) -> None:
        """The files of a variant's folder, its names replaced by others."""
        for file in sorted((self.root / source).iterdir()):
            text = file.read_text()
            for old, new in renamed:
                text = text.replace(old, new)
            self.add(f"{target}/{file.name}", text)

    def run(self, code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Python code with the copy's package."""
        folders = [str(self.root / "harness"), str(self.root / "tests")]
        start = START.format(folders=folders, arguments=["ladder", *arguments])
        return subprocess.run(
            [sys.executable, "-B", "-c", start + code], capture_output=True, text=True, cwd=self.root
        )

    def ladder(self, *arguments: str) -> str:
        done = self.run("from draft_ladder.cli import main; main()", *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    return Copy(tmp_path / "copy")


def rows() -> dict[str, tuple[list[str], list[str]]]:
    """What can be added -> (the files, what to copy from), as the guide says it."""
    found = {}
    for line in GUIDE.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 3 and cells[0] in MAX_FILES:
            found[cells[0]] = (re.findall("`([^`]*)`", cells[1]), re.findall("`([^`]*/[^`]*)`", cells[2]))
    return found


def as_said(what: str, name: str = "") -> set[str]:
    return {file.replace("NAME", name) for file in rows()[what][0]}


def test_every_line_of_the_table_names_few_files_and_where_to_copy_from() -> None:
    assert rows().keys() == MAX_FILES.keys()
    for what, (files, sources) in rows().items():
        assert 0 < len(files) <= MAX_FILES[what]
        assert all((ROOT / source).exists() for source in sources)
        # What is added is copied from a place that the line names; what is edited is there already.
        assert bool(sources) == any("NAME" in file for file in files)
        assert all("NAME" in file or (ROOT / file).is_file() for file in files)


def counts_of(program: Path, folder: Path) -> dict[str, int]:
    tokens, static = write_inputs(folder)
    command = [str(program), "replay", str(tokens), str(static), "2048", "3"]
    answer = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return {name: answer[name] for name in ("n_drafted", "n_accept", "draft_calls")}


def found_in(copy: Copy, name: str, program: Path) -> Variant:
    """The variant as the harness finds it in the copy's folders, the program in its module's place."""
    folder = next((copy.root / "variants").glob(f"*/{name}"))
    root = copy.root.parent / "built" / "variants" / folder.parent.name / name
    root.mkdir(parents=True)
    shutil.copy(folder / "variant.toml", root)
    shutil.copy(program, root / f"{name}{EXTENSION_SUFFIXES[0]}")
    (variant,) = discover(copy.root.parent / "built")
    return variant


@needs_compiler
def test_a_container_variant(copy: Copy, tmp_path: Path) -> None:
    names = (("dense_map", "node_map"), ("dense map", "node map"), ("Dense", "Node"))
    copy.variant("variants/ablations/dense_map", "variants/ablations/node_map", *names)
    drafter = "variants/ablations/node_map/drafter.hpp"
    container = "NodeContiguousMap<Ngram, MapSuccessors, Hash>"
    copy.edit(drafter, f"= {container};", "= std::unordered_map<Ngram, MapSuccessors, Hash>;")
    copy.edit(drafter, '#include "base/hash.hpp"', '#include <unordered_map>\n\n#include "base/hash.hpp"')
    assert copy.touched == as_said("a container variant", "node_map")
    programs = build(copy.root, tmp_path / "build", ["node_map", "dense_map"], "g++")
    counts = {name: counts_of(program, tmp_path) for name, program in programs.items()}
    assert counts["node_map"] == counts["dense_map"]
    assert counts["node_map"]["n_drafted"] > 0
    variant = found_in(copy, "node_map", programs["node_map"])
    assert (variant.rule, variant.ties, variant.group) == ("llama", "iteration", "ablations")


RULE = """
// Drafts whatever it knows.
struct HopefulRule {
    static constexpr std::string_view name = "hopeful";
    static constexpr Thresholds open{{{1, 0}, {1, 0}, {1, 0}, {1, 0}}};
    static constexpr Threshold any{1, 0};
    static constexpr const Thresholds& context() { return open; }
    static constexpr const Thresholds& dynamic() { return open; }
    static constexpr const Threshold& static_only() { return any; }
};
"""


@needs_compiler
def test_a_rule(copy: Copy, tmp_path: Path) -> None:
    names = (("ladder/sorted_vectors", "beyond/hopeful"), ("sorted_vectors", "hopeful"))
    more = (("SortedVectors", "Hopeful"), ("rung = 4\n", ""), ('rule = "llama"', 'rule = "hopeful"'))
    copy.variant("variants/ladder/sorted_vectors", "variants/beyond/hopeful", *names, *more)
    drafter = "variants/beyond/hopeful/drafter.hpp"
    copy.edit(drafter, "Ties::token, precheck>", "Ties::token, precheck, HopefulRule>")
    copy.edit(drafter, "namespace ladder {\n", f"namespace ladder {{\n{RULE}")
    assert copy.touched == as_said("a rule", "hopeful")
    programs = build(copy.root, tmp_path / "build", ["hopeful", "sorted_vectors"], "g++")
    counts = {name: counts_of(program, tmp_path) for name, program in programs.items()}
    assert counts["hopeful"]["n_drafted"] > counts["sorted_vectors"]["n_drafted"] > 0
    assert found_in(copy, "hopeful", programs["hopeful"]).rule == "hopeful"


def test_a_python_peer(copy: Copy, tmp_path: Path) -> None:
    copy.variant("docs/examples/repeat_last", "variants/peers/zeros", ("repeat_last", "zeros"))
    copy.edit("variants/peers/zeros/drafter.py", "[self.last] * n", "[0] * n")
    assert copy.touched == as_said("a Python peer", "zeros")
    root = variant_root(tmp_path / "native")
    shutil.copytree(copy.root / "variants/peers/zeros", root / "variants/peers/zeros")
    experiment = small_experiment(variants=["zeros", "sorted_vectors"], repeats=1)
    plan = small_plan(experiment, small_inputs(tmp_path / "in"), root)
    assert run_experiment(experiment, plan, tmp_path / "results", Watcher()) is ExitCode.OK
    measured = [
        record.measured or {}
        for record in load_records(tmp_path / "results" / "runs")
        if record.spec.engine == "python"
    ]
    assert measured
    assert all(found["n_drafted"] == 3 * found["draft_calls"] > 0 for found in measured)


def sample(folder: Path) -> Path:
    records = [
        make_record(make_spec(name, size), make_measured(latency + size, draft_calls=4_321))
        for name, latency in (("copying_map", 100.0), ("frozen", 5.0))
        for size in (25, 541)
    ]
    return write_results(folder / "machine" / "sample", records)


METRIC = """METRICS: tuple[Metric, ...] = (
    Metric("draft_calls", "calls", "draft calls of the replay", None, _count("draft_calls"), _NOT_REPORTED,
           column=Column("drafts", "asked for")),
"""
METRIC_TEST = """

def test_draft_calls() -> None:
    assert values(draft_calls=7)["draft_calls"] == 7
"""


def test_a_metric(copy: Copy, tmp_path: Path) -> None:
    copy.edit(
        "harness/draft_ladder/bench/metrics.py", "METRICS: tuple[Metric, ...] = (\n", METRIC.lstrip("\n")
    )
    tests = "tests/bench/test_stats.py"
    copy.add(tests, (copy.root / tests).read_text() + METRIC_TEST)
    assert copy.touched == as_said("a metric")
    table = copy.ladder("stats", str(sample(tmp_path)))
    assert "asked for" in table
    assert table.count("4,321") == 4
    asked = f"import pytest; sys.exit(pytest.main(['-q', '-k', 'test_draft_calls', {tests!r}]))"
    done = copy.run(asked)
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout


def test_a_chart(copy: Copy, tmp_path: Path) -> None:
    copy.edit(
        "harness/draft_ladder/report/charts.py",
        '    Chart("speedup",',
        '    Chart("merges", "merge_us"),\n    Chart("speedup",',
    )
    assert copy.touched == as_said("a chart")
    copy.ladder("charts", str(sample(tmp_path)), "--plots", str(tmp_path / "plots"))
    written = {path.name for path in (tmp_path / "plots").rglob("*") if path.stat().st_size > 0}
    assert {"merges.png", "merges.svg", "speedup.svg"} <= written


SOURCE = '''
"""Numbers in words, without end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from draft_ladder.data.sources import Source, SourceConfig, Split


class NumbersConfig(SourceConfig):
    """The whole numbers."""

    source: Literal["numbers"]

    def resolve(self, base: Path) -> Source:
        """The one there is."""
        return Numbers()


class Numbers:
    """Odd ones to learn from, even ones to replay."""

    name, label, replay_label, note = "numbers", "odd numbers", "even numbers", None
    kind: Literal["real", "synthetic"] = "real"

    def inputs(self, split: Split) -> dict[str, str]:
        """Nothing is read."""
        return {}

    def identity(self, split: Split) -> dict[str, Any]:
        """One text each."""
        return {"source": self.name, "split": split}

    def blocks(self, split: Split) -> Iterator[bytes]:
        """A number a line."""
        for number in range(split == "train", 100_000, 2):
            yield f"{number}\\n".encode()
'''


def test_a_text_source(copy: Copy, tmp_path: Path) -> None:
    copy.add("harness/draft_ladder/data/numbers_source.py", SOURCE.lstrip())
    resolve = "harness/draft_ladder/data/resolve.py"
    copy.edit(resolve, "class DefaultConfig", f"{IMPORTED}\n\n\nclass DefaultConfig")
    copy.edit(
        resolve, "| SyntheticConfig | DefaultConfig", "| SyntheticConfig | NumbersConfig | DefaultConfig"
    )
    assert copy.touched == as_said("a text source", "numbers_source")
    cut = ["corpus", "cut", "numbers", "--size-mb", "0.01", "--cache-dir", str(tmp_path / "cache"), "--json"]
    made = json.loads(copy.ladder(*cut))
    assert Path(made["corpus"]["path"]).read_bytes().startswith(b"1\n3\n5\n")
    assert made["corpus"]["label"] == "odd numbers"
    assert Path(made["replay"]["path"]).read_bytes().endswith(b"\n99998\n")


IMPORTED = "from draft_ladder.data.numbers_source import NumbersConfig"


@needs_compiler
def test_a_new_variant_builds_and_drafts_as_the_one_it_is_made_from(copy: Copy, tmp_path: Path) -> None:
    folder = new_variant(copy.root, "mine", "sorted_vectors")
    assert folder == copy.root / "variants/ablations/mine"
    programs = build(copy.root, tmp_path / "build", ["mine", "sorted_vectors"], "g++")
    counts = {name: counts_of(program, tmp_path) for name, program in programs.items()}
    assert counts["mine"] == counts["sorted_vectors"]
    variant = found_in(copy, "mine", programs["mine"])
    assert (variant.rung, variant.versus, variant.label) == (None, "sorted_vectors", "mine")


def test_a_new_variant_in_python_is_measured_at_once(copy: Copy, tmp_path: Path) -> None:
    folder = new_variant(copy.root, "mine", "repeat_last", "peers")
    root = variant_root(tmp_path / "native")
    shutil.copytree(folder, root / "variants/peers/mine")
    experiment = small_experiment(variants=["mine"], repeats=1)
    plan = small_plan(experiment, small_inputs(tmp_path / "in"), root)
    assert run_experiment(experiment, plan, tmp_path / "results", Watcher()) is ExitCode.OK


@pytest.mark.parametrize(
    ("name", "source", "group"),
    [
        ("dense_map", "frozen", "beyond"),  # taken, in another group
        ("../x", "frozen", "ablations"),
        ("x", "nothing", "ablations"),
        ("x", "frozen", "elsewhere"),
    ],
)
def test_a_new_variant_that_cannot_be_is_refused(copy: Copy, name: str, source: str, group: str) -> None:
    with pytest.raises(InputError):
        new_variant(copy.root, name, source, group)
    assert not copy.touched
