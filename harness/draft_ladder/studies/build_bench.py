"""What a static cache costs to make, and against llama.cpp's way of counting: `ladder cache bench`."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from draft_ladder.base.errors import ExitCode, RunFailedError
from draft_ladder.base.manifests import sha256_file, write_atomic
from draft_ladder.bench import environment
from draft_ladder.bench.launch import WorkerInputError
from draft_ladder.bench.places import write_json, write_machine
from draft_ladder.data.cache import SUFFIXES
from draft_ladder.data.tokens import TOKEN_BYTES
from draft_ladder.report.pairs import MIN_PAIRS
from draft_ladder.report.style import TextTable, as_markdown, format_number
from draft_ladder.studies.build_steps import STEPS, Request

SCHEMA = 1
RECORD_NAME, PAGE_NAME = "builder.json", "builder.md"
OPTIONAL = tuple(step for step in STEPS if step not in ("tokenise", "count"))
COMPARED = ("sorted_loop", "nested_maps")
LABELS = {
    "generate": "generate as much synthetic text",
    "tokenise": "tokenise the text",
    "count": "count and write, in memory",
    "count_bounded": "count and write, bounded",
    "freeze": "freeze (rung 5's file)",
    "summarise": "convert (summary_index's file)",
    "sorted_loop": "counting alone, one thread",
    "nested_maps": "counting alone, nested maps",
}

Note = Callable[[str], None]


@dataclass(frozen=True)
class Bench:
    """What to measure: a text (or its tokens, then `tokenizer` is None), and how."""

    source: Path
    tokenizer: str | None
    memory_bytes: int
    jobs: int
    repeats: int
    steps: tuple[str, ...]


def run_bench(bench: Bench, work: Path, note: Note) -> dict[str, Any]:
    """Every step `repeats` times, one repeat after the other, each in a new process and a new folder.

    Files lie in `work` meanwhile. Raises InputError for bad input and RunFailedError where a process died
    or two builders wrote different bytes.
    """
    runs: list[Request] = []
    for repeat in range(1, bench.repeats + 1):
        with tempfile.TemporaryDirectory(prefix="bench-", dir=work) as folder:
            for run in _one_repeat(bench, Path(folder)):
                pace = f", {run['tokens_per_s'] / 1e6:.1f} million tokens/s" if run["tokens_per_s"] else ""
                note(f"{LABELS[run['step']]}, repeat {repeat}: {run['wall_s']:.2f} s{pace}")
                runs.append({"repeat": repeat, **run})
    return {
        "schema": SCHEMA,
        "source_bytes": bench.source.stat().st_size,
        "source_sha256": sha256_file(bench.source),
        "tokenizer": bench.tokenizer,
        "memory_bytes": bench.memory_bytes,
        "jobs": bench.jobs,
        "git": environment.git_state(),
        "runs": runs,
    }


def _one_repeat(bench: Bench, folder: Path) -> list[Request]:
    tokens, runs = bench.source, []
    if bench.tokenizer is not None:
        request = {"text": str(bench.source), "tokenizer": bench.tokenizer, "jobs": bench.jobs}
        runs.append(_run("tokenise", folder, request, None))
        tokens = Path(runs[-1]["path"])
    n_tokens = tokens.stat().st_size // TOKEN_BYTES
    if "generate" in bench.steps:
        runs.append(_run("generate", folder / "synthetic", {"n_tokens": n_tokens}, n_tokens))
    shared = {"tokens": str(tokens), "jobs": bench.jobs}
    count = _run("count", folder / "memory", shared, n_tokens)
    runs.append(count)
    if "count_bounded" in bench.steps:
        bounded = _run(
            "count_bounded", folder / "bounded", shared | {"memory_bytes": bench.memory_bytes}, n_tokens
        )
        if bounded["sha256"] != count["sha256"]:
            raise RunFailedError("count_bounded: wrote other bytes than the builder in memory")
        runs.append(bounded)
    for step, suffix in (("freeze", SUFFIXES["frozen"]), ("summarise", ".summary")):
        if step in bench.steps:
            target = {"static": count["path"], "target": str(folder / f"static{suffix}")}
            runs.append(_run(step, folder, target, n_tokens))
    runs += [_run(step, folder, shared, n_tokens) for step in COMPARED if step in bench.steps]
    if runs[-1]["step"] == "nested_maps":
        n_bigrams = {run["facts"]["n_bigrams"] for run in (count, *runs[-2:])}
        if len(n_bigrams) > 1:
            raise RunFailedError(f"nested_maps: the loops found different numbers of bigrams, {n_bigrams}")
    return [{key: value for key, value in run.items() if key != "path"} for run in runs]


def _run(step: str, folder: Path, request: Request, n_tokens: int | None) -> Request:
    """One step in a process of its own."""
    content = json.dumps({"step": step, "folder": str(folder), **request})
    command = [sys.executable, "-m", "draft_ladder.studies.build_steps", content]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == ExitCode.USAGE:
        raise WorkerInputError(done.stderr.strip().splitlines()[-1])
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no word"])[-1]
        raise RunFailedError(f"{step}: ended with {done.returncode}: {last}")
    answer: Request = json.loads(done.stdout)
    loop_ns = answer.get("facts", {}).get("count_ns") if step in COMPARED else None
    seconds = answer["wall_s"] if loop_ns is None else loop_ns / 1e9
    n_tokens = answer.pop("n_tokens", n_tokens)
    pace = n_tokens / seconds if n_tokens and seconds else None
    return {"step": step, **answer, "loop_s": seconds, "n_tokens": n_tokens, "tokens_per_s": pace}


# --- printing ---------------------------------------------------------------------------------------------


def table(record: dict[str, Any]) -> TextTable:
    """Medians and ranges of every step."""
    rows = []
    for step in dict.fromkeys(run["step"] for run in record["runs"]):
        runs = [run for run in record["runs"] if run["step"] == step]
        walls = [run["loop_s"] for run in runs]
        written = runs[0].get("bytes")
        peaks = [run["peak_rss_bytes"] for run in runs]
        rows.append(
            (
                LABELS[step],
                format_number(statistics.median(walls)),
                f"{format_number(min(walls))} to {format_number(max(walls))}",
                format_number(statistics.median(run["cpu_s"] for run in runs)),
                format_number(statistics.median(run["tokens_per_s"] for run in runs) / 1e6),
                format_number(round(max(peaks) / 1e6)) if all(peaks) else "-",
                "-" if written is None else format_number(round(written / 1e6)),
            )
        )
    n_tokens = record["runs"][0]["n_tokens"]
    title = f"{record['source_bytes'] / 1e6:.0f} MB, {n_tokens:,} tokens, {record['jobs']} threads"
    columns = ("step", "s", "lowest to highest", "CPU s", "million tokens/s", "peak RSS, MB", "written, MB")
    return TextTable(title, columns, rows)


def sentences(record: dict[str, Any]) -> list[str]:
    """What the figures say of the two comparisons a builder is judged by."""
    found = []
    loops = {step: _by_repeat(record, step, "loop_s") for step in COMPARED}
    if all(loops.values()):
        ratios = [slow / fast for fast, slow in zip(loops["sorted_loop"], loops["nested_maps"], strict=True)]
        found.append(
            "Counting, one thread each and the same compiler flags: "
            f"{format_number(statistics.median(ratios))} times "
            f"as fast as the nested maps ({format_number(min(ratios))} to {format_number(max(ratios))}"
            f"{'' if len(ratios) >= MIN_PAIRS else f'; {len(ratios)} pairs of runs'})."
        )
    peaks = _by_repeat(record, "count_bounded", "peak_rss_bytes")
    if peaks and all(peaks):
        bound = record["memory_bytes"]
        verdict = "within" if max(peaks) <= bound else "ABOVE"
        found.append(
            f"The bounded builder stayed {verdict} its {format_number(bound / 1e6)} MB: at most "
            f"{format_number(round(max(peaks) / 1e6))} MB, and wrote the same bytes."
        )
    return found


def _by_repeat(record: dict[str, Any], step: str, key: str) -> list[Any]:
    return [run[key] for run in record["runs"] if run["step"] == step]


def page(record: dict[str, Any]) -> str:
    """The record as Markdown."""
    shown = table(record)
    commit = str(record["git"]["git_commit"] or "unknown")[:10]
    lines = ["# What a static cache costs to make", "", f"{shown.title}; commit {commit}.", ""]
    lines += [as_markdown(shown), "", *sentences(record), ""]
    lines += [
        "Medians of new processes; peak RSS is the highest. Tokens per second of a step are those of its own",
        "wall time. The two counting loops are timed alone; their CPU seconds and memory are the process's.",
    ]
    return "\n".join(lines) + "\n"


def write_bench(record: dict[str, Any], folder: Path) -> None:
    """Write the record, its page and what the machine is into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    write_machine(folder)
    write_json(folder / RECORD_NAME, record)
    write_atomic(folder / PAGE_NAME, page(record).encode())
