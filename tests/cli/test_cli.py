"""The command line: exit codes, strict JSON on stdout, progress on stderr, and real llama.cpp's drafts."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from runner_kit import real_variants, variant_root, write_llama_cache, write_tokens

ROOT = Path(__file__).parents[2]
CONFIG = """
name = "tiny"
sizes_mb = [0, 0.05]
replay_mb = 0.03
n_ctx = 256
repeats = 1
chunk_repeats = 1
variants = ["reference_access", "sorted_vectors", "frozen_precheck"]
[corpus]
source = "files"
train = ["${LADDER_TEXT}/train.txt"]
replay = ["${LADDER_TEXT}/replay.txt"]
"""


@pytest.fixture(scope="module", autouse=True)
def _modules() -> None:
    real_variants()


def ladder(*arguments: object, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "LADDER_CACHE_DIR": str(cwd / "cache"), **variables}
    command = [sys.executable, "-c", "from draft_ladder.cli import main; main()", *map(str, arguments)]
    return subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False, timeout=300
    )


def strict(text: str) -> Any:
    def refuse(name: str) -> None:
        raise AssertionError(f"{name} in JSON")

    return json.loads(text, parse_constant=refuse)


def test_list_is_json(tmp_path: Path) -> None:
    done = ladder("list", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    names = [row["name"] for row in strict(done.stdout)]
    assert names[:5] == [
        "copying_map",
        "reference_access",
        "segmented_map",
        "sorted_vectors",
        "frozen_precheck",
    ]
    assert str(ROOT) not in done.stdout


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--no-such"], "--no-such"),
        (["replay"], "VARIANT"),
        (["replay", "nobody", "--tokens", "x"], "nobody"),
        (["replay", "frozen", "--tokens", "x"], "x:"),
        (["replay", "frozen", "--tokens", "/dev/zero"], "/dev/zero"),
        (["replay", "frozen", "--tokens", "."], ".:"),
        (["replay", "frozen", "--tokens", "x", "--n-ctx", "1"], "--n-ctx"),
        (["replay", "frozen", "--tokens", "x", "--timing", "sundial"], "--timing"),
        (["run", "none.toml"], "none.toml"),
        (["charts", "nowhere"], "nowhere/experiment.json"),
    ],
)
def test_usage_errors_are_code_2_and_name_their_place(
    tmp_path: Path, arguments: list[str], named: str
) -> None:
    done = ladder(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert named in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("delay_s", [0.05, 0.1, 0.2, 0.3, 0.4, 0.5])
def test_an_interrupt_while_the_program_starts_is_one_line(tmp_path: Path, delay_s: float) -> None:
    """Counted from the first moment that is ours: Python's own start answers to Python."""
    start = "from draft_ladder.cli import main; print(flush=True); main()"
    command = [sys.executable, "-c", start, "list"]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(delay_s)
        is_over = process.poll() is not None
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert (process.returncode, said.count("\n")) == ((0, 0) if is_over else (130, 1)), said


def test_replay_takes_both_formats_and_converts_apart(tmp_path: Path) -> None:
    tokens = write_tokens(tmp_path / "x.tok", 3000, seed=2)
    static = write_llama_cache(tmp_path / "x.bin", write_tokens(tmp_path / "y.tok", 20_000))
    digests = {}
    for name in ("sorted_vectors", "frozen", "frozen_precheck"):
        dump = tmp_path / f"{name}.txt"
        options = ("--n-ctx", "256", "--dump", dump, "--json")
        done = ladder("replay", name, "--tokens", tokens, "--static", static, *options, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        measured = strict(done.stdout)
        assert (measured["convert_ns"] is not None) == name.startswith("frozen")
        assert (measured["load_verify_ns"] is not None) == name.startswith("frozen")
        digests[name] = measured["draft_digest"]
        assert digests[name] == hashlib.sha256(dump.read_bytes()).hexdigest()
    assert len(set(digests.values())) == 1


@pytest.mark.parametrize(("count", "chunks"), [(256, 0), (257, 1), (512, 1), (513, 2), (0, 0)])
def test_too_few_tokens_are_said_and_are_no_error(tmp_path: Path, count: int, chunks: int) -> None:
    tokens = write_tokens(tmp_path / "x.tok", count)
    done = ladder("replay", "sorted_vectors", "--tokens", tokens, "--n-ctx", "256", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    measured = strict(done.stdout)
    assert measured["n_chunks"] == chunks
    if not chunks:
        assert measured["draft_latency_us"] is None
        assert measured["draft_latency_note"]
        assert "x.tok" in done.stderr


def test_all_different_tokens_draft_nothing(tmp_path: Path) -> None:
    import struct

    tokens = tmp_path / "x.tok"
    tokens.write_bytes(struct.pack("<600i", *range(600)))
    done = ladder("replay", "sorted_vectors", "--tokens", tokens, "--n-ctx", "256", "--json", cwd=tmp_path)
    measured = strict(done.stdout)
    assert (measured["n_drafted"], measured["draft_latency_us"]) == (0, None)
    assert measured["draft_latency_note"] == "nothing was drafted"


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    folder = tmp_path / "texts"
    folder.mkdir()
    source = "".join(path.read_text() for path in sorted((ROOT / "harness/draft_ladder/report").glob("*.py")))
    (folder / "train.txt").write_text(source * (80_000 // len(source) + 1))
    (folder / "replay.txt").write_text((ROOT / "harness/draft_ladder/bench/runner.py").read_text() * 3)
    (tmp_path / "tiny.toml").write_text(CONFIG)
    return folder


def test_all_goes_from_text_to_picture_and_then_skips(tmp_path: Path, texts: Path) -> None:
    options = ("--text", texts, "--machine", "here", "--set", "seed=7")
    done = ladder("all", "tiny.toml", *options, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    results, plots = tmp_path / "results/here/tiny", tmp_path / "plots/here/tiny"
    assert len(list((results / "runs").glob("*.json"))) == 12
    assert {path.suffix for path in plots.iterdir()} == {".svg", ".png"}
    for path in results.rglob("*.json"):
        strict(path.read_text())
        assert str(tmp_path) not in path.read_text()
    assert strict((results / "experiment.json").read_text())["overrides"] == {"seed": 7}
    again = ladder("run", "tiny.toml", *options, "--json", cwd=tmp_path)
    assert strict(again.stdout)["skipped_total"] == 12
    before = {path.name: path.read_bytes() for path in plots.iterdir()}
    assert ladder("charts", results, cwd=tmp_path).returncode == 0
    assert {path.name: path.read_bytes() for path in plots.iterdir()} == before
    assert ladder("charts", "tiny.toml", "--machine", "here", cwd=tmp_path).returncode == 0
    plan = ladder("run", "tiny.toml", *options, "--dry-run", "--json", "--force", cwd=tmp_path)
    assert [row["action"] for row in strict(plan.stdout)] == ["run"] * 12


def test_a_broken_variant_ends_with_code_3_and_is_not_charted(tmp_path: Path, texts: Path) -> None:
    root = variant_root(tmp_path / "native", "broken")
    for module in real_variants()[0].module.parents[3].glob("_builder*"):
        (root / module.name).symlink_to(module)
    names = 'variants=["copying_map", "broken"]'
    done = ladder(
        "all",
        "tiny.toml",
        "--text",
        texts,
        "--machine",
        "here",
        "--set",
        names,
        cwd=tmp_path,
        LADDER_NATIVE=str(root),
    )
    assert done.returncode == 3, done.stderr
    assert done.stderr
    assert "broken" not in (tmp_path / "results/here/tiny/summary.csv").read_text()


def test_ctrl_c_ends_with_130_and_a_second_run_continues(tmp_path: Path, texts: Path) -> None:
    """The whole terminal's Ctrl-C: runner and worker are in the foreground process group."""
    arguments = ["run", "tiny.toml", "--text", str(texts), "--machine", "here", "--set", "repeats=40"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "LADDER_CACHE_DIR": str(tmp_path / "cache")}
    runs = tmp_path / "results/here/tiny/runs"
    process = subprocess.Popen(
        [sys.executable, "-c", "from draft_ladder.cli import main; main()", *arguments],
        cwd=tmp_path,
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and len(list(runs.glob("*.json"))) < 3:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in err
    kept = {path.name: path.read_bytes() for path in runs.glob("*.json")}
    assert len(kept) >= 3
    done = ladder(*arguments, "--json", cwd=tmp_path)
    assert strict(done.stdout)["skipped_total"] == len(kept)
    assert strict(done.stdout)["runs_total"] == 6 * 41


def test_tokens_and_cache_verbs_make_files_that_replay(tmp_path: Path, texts: Path) -> None:
    for name in ("train", "replay"):
        done = ladder("tokens", texts / f"{name}.txt", "--out", f"{name}.tok", "--json", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    assert ladder("cache", "train.tok", "--out", "train.bin", cwd=tmp_path).returncode == 0
    done = ladder(
        "replay", "copying_map", "--tokens", "replay.tok", "--static", "train.bin", "--json", cwd=tmp_path
    )
    assert strict(done.stdout)["n_drafted"] > 0
    corpus = ladder(
        "corpus",
        "files",
        "--size-mb",
        "0.01",
        "--train",
        "texts/train.txt",
        "--replay",
        "texts/replay.txt",
        "--json",
        cwd=tmp_path,
    )
    assert strict(corpus.stdout)["corpus"]["bytes"] <= 10_000
    wanted = ladder(
        "corpus",
        "files",
        "--size-mb",
        "9",
        "--train",
        "texts/train.txt",
        "--replay",
        "texts/replay.txt",
        cwd=tmp_path,
    )
    assert wanted.returncode == 2
    assert "9" in wanted.stderr


def test_nothing_is_written_over_what_it_is_made_from(tmp_path: Path, texts: Path) -> None:
    done = ladder("tokens", texts / "train.txt", "--out", texts / "train.txt", cwd=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "train.txt: " in done.stderr
    assert ladder("tokens", texts / "replay.txt", "--out", "replay.tok", cwd=tmp_path).returncode == 0
    before = (tmp_path / "replay.tok").read_bytes()
    replay = ["replay", "sorted_vectors", "--tokens", "replay.tok"]
    done = ladder(*replay, "--dump", "replay.tok", cwd=tmp_path)
    assert (done.returncode, "replay.tok: " in done.stderr) == (2, True)
    assert (tmp_path / "replay.tok").read_bytes() == before
    for options, named in {
        ("--dump", "texts"): "texts: ",
        ("--cpu", "9999"): "--cpu: core 9999",
        ("--timeout-s", "nan"): "--timeout-s: nan",
        ("--n-ctx", "4294967296"): "--n-ctx",
    }.items():
        done = ladder(*replay, *options, cwd=tmp_path)
        assert done.returncode == 2, (options, done.stderr)
        assert named in " ".join(done.stderr.split()), done.stderr
        assert "Traceback" not in done.stderr
    assert not list(tmp_path.glob("*.tmp"))


def test_an_unforeseen_place_that_cannot_be_written_is_one_line(tmp_path: Path, texts: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    done = ladder("cache", "bench", texts / "train.txt", "--cache-dir", "file/below", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("ladder: ")


def test_doctor_reports(tmp_path: Path) -> None:
    done = ladder("doctor", "--json", cwd=tmp_path, HF_HUB_OFFLINE="1")
    findings = strict(done.stdout)
    assert {"compiler", "modules", "builder", "tokenizer", "hub", "disk", "model", "noise"} == {
        row["name"] for row in findings
    }


@pytest.mark.parametrize("variant", ["copying_map", "frozen_precheck"])
def test_replay_of_the_golden_case_is_llama_cpps(tmp_path: Path, golden: Path, variant: str) -> None:
    cases = json.loads((golden / "cases.json").read_text())
    ties = "iteration" if variant == "copying_map" else "token"
    for case in cases:
        if (case["case"], case["n_ctx"], case["n_draft"]) != ("s", 4096, 3):
            continue
        static = ["--static", golden / "s.bin"] if case["static"] else []
        done = ladder("replay", variant, "--tokens", golden / "s.test.tok", *static, "--json", cwd=tmp_path)
        measured, expected = strict(done.stdout), case[ties]
        assert measured["draft_digest"] == expected["drafts_sha256"]
        for name in ("n_drafted", "n_accept", "draft_calls"):
            assert measured[name] == expected[name]
