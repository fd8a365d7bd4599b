"""The engine door: a drafter in Python runs as any variant does, is checked, and is a series of its own."""

from __future__ import annotations

import hashlib
import json
import struct
from pathlib import Path
from typing import Any

import pytest
from draft_ladder.base.errors import ExitCode, InputError
from draft_ladder.base.variants import discover, discover_all, find
from draft_ladder.bench.launch import run_worker
from draft_ladder.bench.records import load_records
from draft_ladder.bench.runner import Inputs, run_experiment
from draft_ladder.bench.stats import load_results, run_rows, summarize
from draft_ladder.cli.machine_verbs import list_variants
from runner_kit import Watcher, add_peer, small_experiment, small_inputs, small_plan, variant_root

REPEATER = """
class Drafter:
    def __init__(self, static, options):
        self.static, self.options = static, options

    def begin(self, prompt):
        self.last = prompt[-1]

    def draft(self, n):
        return {draft}

    def accept(self, tokens):
        self.last = tokens[-1]

    def end(self):
        pass
"""
REPEAT_LAST = REPEATER.format(draft="[self.last] * n")
SPECIFIED = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
from specification import ORDERS, Specification, read_static

class Drafter:
    def __init__(self, static, options):
        order = ORDERS["token"]
        self.inner = Specification(order, read_static(static.read_bytes(), order) if static else None)

    def begin(self, prompt):
        self.accept(prompt)

    def draft(self, n):
        return [step.token for step in self.inner.draft(n)]

    def accept(self, tokens):
        for token in tokens:
            self.inner.append(token)

    def end(self):
        self.inner.end_chunk()

    def memory_bytes(self):
        return 5
"""


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Inputs:
    return small_inputs(tmp_path_factory.mktemp("inputs"))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return variant_root(tmp_path / "native")


def request(inputs: Inputs, **changes: Any) -> dict[str, Any]:
    asked = {"tokens": str(inputs.tokens), "static": None, "n_ctx": 64, "n_draft": 3, "timing": "call"}
    return {**asked, "options": {}, **changes}


def repeated_drafts(tokens: list[int], n_ctx: int, n: int) -> str:
    """The dump of a drafter that repeats the last token, by hand."""
    lines = []
    for start in range(0, (len(tokens) - 1) // n_ctx * n_ctx, n_ctx):
        at, end = start + 1, start + n_ctx
        while at < end:
            last = tokens[at - 1]
            lines.append(f"{at}:{f' {last}' * n}\n")
            for _ in range(n):
                if at < end and tokens[at] == last:
                    at += 1
                else:
                    break
            at += at < end
    return "".join(lines)


def test_it_runs_as_any_variant_does(tmp_path: Path, root: Path, inputs: Inputs) -> None:
    add_peer(root, "repeat_last", REPEAT_LAST)
    names = ["repeat_last", "sorted_vectors"]
    experiment = small_experiment(variants=names, repeats=1, chunk_repeats=1, histogram_repeats=1)
    code = run_experiment(experiment, small_plan(experiment, inputs, root), tmp_path / "r", Watcher())
    assert code is ExitCode.OK
    records = load_records(tmp_path / "r" / "runs")
    assert {(r.spec.variant, r.spec.engine) for r in records} == {
        ("repeat_last", "python"),
        ("sorted_vectors", "native"),
    }
    assert {record.draft_check for record in records} == {"unchecked"}  # a rule of its own
    by_engine = {(r.spec.engine, r.spec.timing, r.spec.size_mb): r.measured or {} for r in records}
    for timing in ("call", "chunk", "histogram"):
        python, native = (by_engine[engine, timing, 1.0] for engine in ("python", "native"))
        assert python.keys() - native.keys() == {"engine_overhead_ns_per_call"}
        assert native.keys() <= python.keys()
        assert python["engine_overhead_ns_per_call"] > 0
        for name, value in native.items():
            assert (value is None) <= (python[name] is None), name
        upper, counts = zip(*(python["histogram"] or [[0, 0]]), strict=True)
        assert sum(counts) == (python["draft_calls"] if timing == "histogram" else 0)
        assert list(upper) == sorted(upper)
    assert all("engine python" in r.spec.describe() for r in records if r.spec.engine == "python")
    results = load_results(tmp_path / "r")
    assert results.variants["repeat_last"]["engine"] == "python"
    latencies = [row for row in summarize(run_rows(records)) if row.metric == "draft_latency_us"]
    assert len(latencies) == 4  # two variants at two sizes: no series in common


@pytest.mark.parametrize(("n_ctx", "n_draft"), [(64, 3), (2, 1), (7, 0), (50, 8)])
def test_the_loop_is_the_replay(tmp_path: Path, root: Path, inputs: Inputs, n_ctx: int, n_draft: int) -> None:
    add_peer(root, "repeat_last", REPEAT_LAST)
    variant, dump = find("repeat_last", root), tmp_path / "drafts.txt"
    asked = request(inputs, dump=str(dump), n_ctx=n_ctx, n_draft=n_draft)
    answer = run_worker(variant, "replay", asked).answer
    assert answer is not None
    data = inputs.tokens.read_bytes()
    tokens = list(struct.unpack(f"<{len(data) // 4}i", data))
    assert dump.read_text() == repeated_drafts(tokens, n_ctx, n_draft)
    assert hashlib.sha256(dump.read_bytes()).hexdigest() == answer["draft_digest"]
    assert dump.read_text().count("\n") == answer["draft_calls"]
    assert sum(answer["drafted_at"]) == answer["n_drafted"] == n_draft * answer["draft_calls"]


def test_engines_of_one_rule_must_draft_alike(tmp_path: Path, root: Path, inputs: Inputs) -> None:
    add_peer(root, "specified", SPECIFIED, rule="llama")
    names = ["sorted_vectors", "specified"]
    experiment = small_experiment(variants=names, repeats=1)
    code = run_experiment(experiment, small_plan(experiment, inputs, root), tmp_path / "r", Watcher())
    assert code is ExitCode.OK
    records = load_records(tmp_path / "r" / "runs")
    assert {(r.spec.variant, r.draft_check) for r in records} == {
        ("sorted_vectors", "reference"),
        ("specified", "equal"),
    }
    counts = ("n_drafted", "n_accept", "draft_calls", "hit_calls", "draft_steps", "drafted_at", "accepted_at")
    for size in (0, 1):
        one, other = (r.measured or {} for r in records if r.spec.size_mb == size)
        assert {name: one[name] for name in counts} == {name: other[name] for name in counts}
    assert {(r.measured or {})["memory_bytes"] for r in records if r.spec.variant == "specified"} == {5}


@pytest.mark.parametrize(
    ("draft", "reason", "named"),
    [
        ("(1, 2)", "bad draft", "tuple"),
        ("None", "bad draft", "NoneType"),
        ("[1] * (n + 1)", "bad draft", "4 tokens"),
        ("[1, 2.0]", "bad draft", "2.0"),
        ("[True]", "bad draft", "True"),
        ("[-1]", "bad draft", "-1"),
        ("[2**31]", "bad draft", str(2**31)),
        ("1 / 0", "internal error", "ZeroDivisionError"),
    ],
)
def test_a_wrong_draft_fails_the_run(root: Path, inputs: Inputs, draft: str, reason: str, named: str) -> None:
    add_peer(root, "wrong", REPEATER.format(draft=draft))
    result = run_worker(find("wrong", root), "replay", request(inputs))
    assert result.failure is not None
    assert (result.failure.reason, result.exit_code) == (reason, ExitCode.RUN_FAILED)
    assert named in result.failure.detail


def test_what_it_requires_is_asked_for_by_name(root: Path, inputs: Inputs) -> None:
    add_peer(root, "wanting", REPEAT_LAST + "\ndef requires():\n    return 'no package x: pip install x'\n")
    result = run_worker(find("wanting", root), "info", {})
    assert result.failure is not None
    assert (result.failure.reason, result.exit_code) == ("not available", ExitCode.USAGE)
    assert "pip install x" in result.failure.detail


def test_it_may_import_what_is_installed_and_a_package_of_its_own_name(root: Path, inputs: Inputs) -> None:
    add_peer(root, "pydantic", "import pydantic, numpy\n" + REPEAT_LAST, package="pydantic")
    answer = run_worker(find("pydantic", root), "info", {}).answer
    assert answer is not None
    assert {"numpy", "pydantic"} <= set(answer["modules"])
    assert (answer["build"]["package"], answer["build"]["engine"]) == ("pydantic", "python")
    assert answer["build"]["package_version"]


def test_another_version_of_the_package_is_another_measurement(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_peer(root, "pydantic", REPEAT_LAST, package="pydantic")
    before = find("pydantic", root).module_sha256
    monkeypatch.setattr("draft_ladder.base.variants.installed_version", lambda package: "0")
    assert find("pydantic", root).module_sha256 != before


def test_a_skipped_variant_is_listed_with_its_reason(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    own = add_peer(root, "absent", REPEAT_LAST, engine="native")
    (own / "skipped.txt").write_text("libabsent is missing: apt install libabsent-dev\n")
    assert "absent" not in {variant.name for variant in discover(root)}
    (found,) = [variant for variant in discover_all(root) if variant.name == "absent"]
    assert found.skipped == "libabsent is missing: apt install libabsent-dev"
    with pytest.raises(InputError, match="libabsent-dev"):
        find("absent", root)
    monkeypatch.setenv("LADDER_NATIVE", str(root))
    list_variants(json_=True)
    listed = {variant["name"]: variant["skipped"] for variant in json.loads(capsys.readouterr().out)}
    assert listed["absent"] == found.skipped
    assert listed["copying_map"] is None
