"""Instruction counts: an extra pass over the successors is caught, a busy machine is not."""

from __future__ import annotations

import hashlib
import json
import shutil
import struct
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest
from draft_ladder.base.errors import InputError
from draft_ladder.cli.program import app
from draft_ladder.studies import instructions as counting
from draft_ladder.studies import rounds as machine_code
from draft_ladder.studies.instructions import (
    ROOT,
    Counts,
    build,
    count,
    default_variants,
    generated_tokens,
    growths,
    key_of,
    load_figures,
    own_format,
    read_callgrind,
    save_figures,
    short,
    write_inputs,
)
from refusals import refused
from typer.testing import CliRunner

CALLGRIND = """version: 1
events: Ir
fn=main
16 10
cfn=ladder::Counted<D>::draft(int)
calls=2 1
17 300

fn=ladder::Counted<D>::draft(int)
1 100
2 50
cfn=helper
calls=5 1
3 150

fn=helper
9 150
totals: 310
"""
NEEDED = [name for name in ("valgrind", "cmake", "c++") if shutil.which(name) is None]


def counts(**changes: float) -> Counts:
    phases = {"draft": 1000.0, "update": 500.0, "end_chunk": 100.0, **changes}
    return Counts(**phases, n_drafted=10, functions={"scan": phases["draft"] - 100, "other": 100.0})


def test_own_and_inclusive_costs() -> None:
    own, inclusive = read_callgrind(CALLGRIND)
    assert own == {"main": 10, "ladder::Counted<D>::draft(int)": 150, "helper": 150}
    assert inclusive == {"main": 310, "ladder::Counted<D>::draft(int)": 300, "helper": 150}


def test_names_are_cut_to_what_people_read() -> None:
    long = "ladder::Choice ladder::best_weighted<std::span<int const, 4ul>, M<int> >(std::span<int> const&)"
    assert short(long) == "ladder::best_weighted"
    assert short("ladder::Counted<ladder::A<B> >::draft(std::span<int>)") == "ladder::Counted::draft"
    assert short("_int_free") == "_int_free"


def test_growth_beyond_two_percent_names_the_function() -> None:
    before = {"frozen": counts()}
    assert growths(before, {"frozen": counts(draft=1019.0)}) == []
    assert growths(before, {"frozen": counts(draft=500.0)}) == []  # fewer is no fault
    (grown,) = growths(before, {"frozen": counts(draft=1100.0)})
    assert (grown.phase, grown.function) == ("draft", "scan")
    assert (grown.before, grown.after) == (1000.0, 1100.0)
    assert (grown.function_before, grown.function_after) == (900.0, 1000.0)
    assert growths({}, {"new": counts()}) == []


def test_the_input_is_the_same_everywhere() -> None:
    tokens = generated_tokens(1000, seed=1)
    assert len(tokens) == 1000
    assert hashlib.sha256(str(tokens.tolist()).encode()).hexdigest()[:16] == "9f4b6653ccd5dbd9"


def test_figures_are_kept_by_key(tmp_path: Path) -> None:
    path = tmp_path / "figures.json"
    assert load_figures(path) == {}
    save_figures("GNU 12", {"a": counts()}, path)
    save_figures("Clang 14", {"a": counts(draft=1.0)}, path)
    save_figures("GNU 12", {"b": counts()}, path)
    found = load_figures(path)
    assert {key: sorted(variants) for key, variants in found.items()} == {
        "GNU 12": ["a", "b"],
        "Clang 14": ["a"],
    }


@pytest.mark.parametrize("name", ["schema", "n_ctx", "n_draft"])
def test_figures_counted_otherwise_are_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "figures.json"
    save_figures("GNU 12", {"a": counts()}, path)
    path.write_text(json.dumps({**json.loads(path.read_text()), name: 99}))
    with refused(path, name, 99):
        load_figures(path)


def run_verb(
    monkeypatch: pytest.MonkeyPatch,
    path: Path,
    now: dict[str, Counts],
    *arguments: str,
    based: list[str] | None = None,
) -> tuple[int, str]:
    """`ladder instructions`, as if callgrind had counted `now`, and `counts()` in the base commit.

    (Exit code, what it said); `based` gets the names that were counted in the base commit.
    """

    def count_source(source: Path, folder: Path, variants: list[str]) -> tuple[str, dict[str, Counts]]:
        if source == ROOT:
            return "GNU 12", now
        (based if based is not None else []).extend(variants)
        return "GNU 12", {name: counts() for name in variants}

    base = path.parent / "base"
    for name in ("ablations/frozen", "ablations/dense_map"):
        shutil.copytree(ROOT / "variants" / name, base / "variants" / name, dirs_exist_ok=True)
    monkeypatch.setattr(counting, "count_all", count_source)
    monkeypatch.setattr(counting, "files_of", lambda *_, **__: nullcontext(base))
    monkeypatch.setattr(load_figures, "__defaults__", (path,))
    monkeypatch.setattr(save_figures, "__defaults__", (path,))
    done = CliRunner().invoke(app, ["instructions", *now, *arguments])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        if not isinstance(done.exception, InputError):
            raise done.exception
        return int(done.exception.exit_code), str(done.exception)
    return done.exit_code, done.output


def test_recorded_counts_are_checked_against_those_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "figures.json"
    save_figures("GNU 12", {"frozen": counts()}, path)
    code, said = run_verb(monkeypatch, path, {"frozen": counts(draft=5000.0)}, "--record", "--check")
    assert code == 1, said
    assert load_figures(path)["GNU 12"]["frozen"].draft == 5000.0  # recorded all the same
    assert run_verb(monkeypatch, path, {"frozen": counts(draft=5000.0)}, "--check")[0] == 0


def test_a_variant_without_figures_is_counted_in_the_base_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "figures.json"
    save_figures("GNU 12", {"frozen": counts()}, path)
    asked: list[str] = []

    now = {"frozen": counts(), "dense_map": counts(draft=5000.0)}
    assert run_verb(monkeypatch, path, now, "--check", "--base", "HEAD", based=asked)[0] == 1
    assert asked == ["frozen", "dense_map"]
    monkeypatch.setenv("LADDER_BASE", "HEAD")
    asked.clear()
    assert run_verb(monkeypatch, path, now, "--check", based=asked)[0] == 1
    assert asked == ["dense_map"]
    assert run_verb(monkeypatch, path, {"frozen": counts(), "brand_new": counts()}, "--check")[0] == 0
    code, said = run_verb(monkeypatch, path, {"brand_new": counts()}, "--check")
    assert (code, "brand_new" in said, "HEAD" in said) == (2, True, True), said


def test_the_committed_figures_cover_the_ladder() -> None:
    for key, variants in load_figures().items():
        assert set(default_variants()) <= set(variants), key


@pytest.mark.parametrize("static_format", ["llama", "frozen"])
def test_a_program_converts_only_where_its_source_names_another_format(
    tmp_path: Path, static_format: str
) -> None:
    described = tmp_path / "variants" / "beyond" / "mine" / "variant.toml"
    described.parent.mkdir(parents=True)
    described.write_text(f'static_format = "{static_format}"\n')
    program, static = tmp_path / "replay_mine", tmp_path / "static.bin"
    program.write_text('#!/bin/sh\n[ "$1" = convert ] && cp "$2" "$3"\n')
    program.chmod(0o755)
    static.write_bytes(b"counts")
    found = own_format(tmp_path, "mine", program, static, tmp_path)
    assert (found == static) == (static_format == "llama")
    assert found.read_bytes() == b"counts"
    program.write_text("#!/bin/sh\necho 'x: is broken; mend it' >&2\nexit 2\n")
    if static_format != "llama":
        with refused("replay_mine", "is broken"):
            own_format(tmp_path, "mine", program, static, tmp_path)


def test_rounds_and_instructions_say_that_they_need_a_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counting, "ROOT", tmp_path)
    monkeypatch.setattr(machine_code, "SOURCES", tmp_path / "native")
    for verb in (["instructions", "frozen"], ["rounds"]):
        with refused(tmp_path, "checkout"):
            raise CliRunner().invoke(app, verb).exception or AssertionError(verb)
        assert "checkout" in CliRunner().invoke(app, [verb[0], "--help"]).output


def test_a_source_without_programs_is_named(tmp_path: Path) -> None:
    with refused(tmp_path):
        build(tmp_path, tmp_path / "build", ["frozen"])


@pytest.mark.skipif(bool(NEEDED), reason=f"needs {', '.join(NEEDED)}")
def test_an_extra_pass_is_caught_and_noise_is_not(tmp_path: Path) -> None:
    inputs = write_inputs(tmp_path)
    changed = tmp_path / "changed"
    changed.mkdir()
    for folder in ("native", "variants"):
        shutil.copytree(ROOT / folder, changed / folder)
    shutil.copy(ROOT / "CMakeLists.txt", changed)
    program = build(ROOT, tmp_path / "build", ["sorted_vectors"])["sorted_vectors"]
    assert key_of(tmp_path / "build").split()[0] in ("GNU", "Clang", "AppleClang")
    negative = tmp_path / "negative.tok"
    negative.write_bytes(struct.pack("<3i", 5, -3, 7))
    answer = subprocess.run([program, "replay", negative, "-", "16", "3"], capture_output=True, text=True)
    assert (answer.returncode, answer.stderr.count("\n")) == (2, 1)
    assert answer.stderr.startswith(f"{negative}: byte 4: ")
    quiet = count(program, *inputs, tmp_path)
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as busy:
        noisy = count(program, *inputs, tmp_path)
        busy.kill()
    assert growths({"sorted_vectors": quiet}, {"sorted_vectors": noisy}, tolerance=0.0005) == []

    header = changed / "native/drafting/lookup_drafter.hpp"
    before = "    Choice choice;\n    std::int64_t best_score = 0;\n"
    extra = (
        "    volatile std::int64_t sink = 0;\n    for (const auto& e : successors) sink = sink + e.count;\n"
    )
    text = header.read_text()
    assert before in text
    header.write_text(text.replace(before, before + extra))
    slower = count(build(changed, tmp_path / "slow", ["sorted_vectors"])["sorted_vectors"], *inputs, tmp_path)
    grown = growths({"sorted_vectors": quiet}, {"sorted_vectors": slower})
    assert [one.phase for one in grown] == ["draft"]
    assert "draft" in grown[0].function or "best_weighted" in grown[0].function
