"""`ladder cache bench`: every step in a process of its own, its figures consistent, bad input one line."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from draft_ladder.base.errors import InputError, LadderError
from draft_ladder.cli.program import app
from draft_ladder.data import spill
from draft_ladder.data.tokens import write_tokens
from draft_ladder.studies import build_bench, build_steps
from draft_ladder.studies.build_bench import COMPARED, page, sentences, table
from draft_ladder.studies.build_steps import STEPS
from typer.testing import CliRunner

try:
    spill.caches_module()
except InputError as error:
    pytest.skip(f"native modules are not built: {error}", allow_module_level=True)

N_TOKENS = 60_000


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    path = tmp_path / "t.tok"
    rng = random.Random(1)
    write_tokens(path, [int(rng.paretovariate(1)) % 900 for _ in range(N_TOKENS)])
    return path


def bench(source: Path, folder: Path, *options: str) -> dict[str, Any]:
    arguments = [
        "cache",
        "bench",
        str(source),
        "--out",
        str(folder / "out"),
        "--cache-dir",
        str(folder / "work"),
    ]
    result = CliRunner().invoke(app, [*arguments, *options, "--json"], catch_exceptions=False)
    assert result.exit_code == 0, result.stderr
    record: dict[str, Any] = json.loads(result.stdout)
    return record


def test_every_step_is_measured_and_written_down(tokens: Path, tmp_path: Path) -> None:
    record = bench(tokens, tmp_path, "--memory", "250MB", "--repeats", "2")
    steps = [run["step"] for run in record["runs"]]
    assert steps == 2 * [step for step in STEPS if step != "tokenise"]
    assert all(run["n_tokens"] in (N_TOKENS, N_TOKENS - 1) for run in record["runs"])
    assert all(0 < run["wall_s"] < 60 and run["peak_rss_bytes"] > 10e6 for run in record["runs"])
    by_step = {run["step"]: run for run in record["runs"]}
    assert by_step["count"]["sha256"] == by_step["count_bounded"]["sha256"]
    assert len({by_step[step]["facts"]["n_bigrams"] for step in ("count", *COMPARED)}) == 1
    assert json.loads((tmp_path / "out" / "builder.json").read_text()) == record
    written = (tmp_path / "out" / "builder.md").read_text()
    assert written == page(record)
    assert "60,000 tokens" in written
    assert "within its 250 MB" in written
    assert len(table(record).rows) == len(set(steps))
    assert (tmp_path / "out" / "machine.json").is_file()
    assert not list((tmp_path / "work").iterdir())  # gigabytes are not left behind


@pytest.mark.parametrize("status", [{"VmRSS": 1}, {}, {"VmHWM": 5}])
def test_a_peak_that_cannot_be_had_is_null_with_a_reason(
    tokens: Path, monkeypatch: pytest.MonkeyPatch, status: dict[str, int]
) -> None:
    """ru_maxrss would be the parent's on Linux: it stands in only where there is no /proc."""
    monkeypatch.setattr(build_steps, "read_memory", lambda: status)
    monkeypatch.setattr(build_steps, "rss_from_getrusage", lambda: 7)
    answer = build_steps.perform({"step": "sorted_loop", "tokens": str(tokens)})
    assert answer["peak_rss_bytes"] == (status.get("VmHWM") if status else 7)
    assert (answer["rss_note"] is None) == (answer["peak_rss_bytes"] is not None)


def test_a_text_is_tokenised_first_and_steps_can_be_left_out(tmp_path: Path) -> None:
    text = tmp_path / "a.txt"
    text.write_text("the cat sat on the mat and the cat sat still\n" * 400)
    skipped = [step for step in STEPS if step not in ("tokenise", "count")]
    options = [word for step in skipped for word in ("--skip", step)]
    record = bench(text, tmp_path, "--repeats", "1", *options)
    assert [run["step"] for run in record["runs"]] == ["tokenise", "count"]
    assert record["runs"][0]["n_tokens"] == record["runs"][1]["n_tokens"] > 400
    assert sentences(record) == []


def test_a_bound_that_is_exceeded_is_said(tokens: Path, tmp_path: Path) -> None:
    record = bench(tokens, tmp_path, "--memory", "250MB", "--repeats", "1", "--skip", "nested_maps")
    record["memory_bytes"] = 10**6
    assert "ABOVE its 1 MB" in sentences(record)[-1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--memory", "1MB"], "--memory: 1000000 bytes are too few"),
        (["--skip", "count"], "--skip: 'count' cannot be left out"),
        (["--memory", "much"], "--memory: 'much' is no amount"),
    ],
)
def test_bad_options_are_one_line(tokens: Path, tmp_path: Path, options: list[str], message: str) -> None:
    result = CliRunner().invoke(
        app, ["cache", "bench", str(tokens), "--out", str(tmp_path / "out"), *options]
    )
    assert isinstance(result.exception, LadderError)
    assert str(result.exception).startswith(message)
    assert "\n" not in str(result.exception)
    assert result.exception.exit_code == 2
    assert not (tmp_path / "out").exists()


def test_different_bytes_of_the_two_builders_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = build_bench._run

    def other(step: str, *rest: Any) -> dict[str, Any]:
        return real(step, *rest) | ({"sha256": "0"} if step == "count_bounded" else {})

    monkeypatch.setattr(build_bench, "_run", other)
    path = tmp_path / "t.tok"
    write_tokens(path, range(1_000))
    result = CliRunner().invoke(app, ["cache", "bench", str(path), "--cache-dir", str(tmp_path / "w")])
    assert isinstance(result.exception, LadderError)
    assert result.exception.exit_code == 1
    assert "other bytes" in str(result.exception)


def test_a_negative_token_is_named(tmp_path: Path) -> None:
    path = tmp_path / "t.tok"
    path.write_bytes(b"\0\0\0\0" * 10 + b"\xff\xff\xff\xff")
    result = CliRunner().invoke(app, ["cache", "bench", str(path), "--cache-dir", str(tmp_path / "w")])
    assert isinstance(result.exception, LadderError)
    assert "byte 40" in str(result.exception)
