"""Run records as the runner writes them, with figures of the test's choosing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from draft_ladder.bench.records import (
    CorpusLabel,
    Failure,
    RunRecord,
    RunSpec,
    TextLabel,
    TokenizerLabel,
    write_record,
)

STYLE = {
    "copying_map": ("copying map", 1, "ladder", "#000000", "o", "iteration"),
    "reference_access": ("reference access", 2, "ladder", "#E69F00", "s", "iteration"),
    "segmented_map": ("segmented map", 3, "ladder", "#56B4E9", "^", "iteration"),
    "sorted_vectors": ("sorted vectors", 4, "ladder", "#009E73", "D", "token"),
    "frozen": ("frozen", None, "ablations", "#CC79A7", "v", "token"),
    "frozen_precheck": ("frozen + precheck", 5, "ladder", "#D55E00", "P", "token"),
}


def make_spec(variant: str = "copying_map", size_mb: float = 25, repeat: int = 0, **changes: Any) -> RunSpec:
    corpus = (
        CorpusLabel(label="none", kind="none", source="none", sha256=None)
        if size_mb == 0
        else CorpusLabel(label="Some text", kind="real", source="files", sha256=f"{int(size_mb * 10):064x}")
    )
    fields: dict[str, Any] = {
        "experiment": "sample",
        "variant": variant,
        "rule": "llama",
        "engine": "native",
        "ties": STYLE[variant][5] if variant in STYLE else "token",
        "size_mb": size_mb,
        "repeat": repeat,
        "timing": "call",
        "n_ctx": 4096,
        "n_draft": 3,
        "axes": {},
        "corpus": corpus,
        "replay_text": TextLabel(label="Some text, replayed", sha256="1" * 64),
        "tokenizer": TokenizerLabel(name="tekken", sha256="2" * 64),
        "tokens_sha256": "3" * 64,
        "static_sha256": None if size_mb == 0 else f"{int(size_mb * 10) + 1:064x}",
        "static_format": "llama",
        "module_sha256": "4" * 64,
        "page_cache": "warm",
        "cpu": None,
        "memory_limit_mb": None,
        "seed": 1,
        "order": 0,
    }
    return RunSpec(**{**fields, **changes})


def make_measured(latency_us: float = 10.0, digest: str = "a" * 64, **changes: Any) -> dict[str, Any]:
    drafted = 1000
    fields: dict[str, Any] = {
        "n_tokens": 9000,
        "n_chunks": 2,
        "n_drafted": drafted,
        "n_accept": 400,
        "draft_calls": 5000,
        "hit_calls": 600,
        "draft_steps": 4000,
        "draft_ns_total": latency_us * 800 * drafted,
        "update_ns_total": latency_us * 200 * drafted,
        "draft_update_ns_total": latency_us * 1000 * drafted,
        "merge_ns_total": 5000.0 * drafted,
        "clock": {"name": "steady", "ns_per_reading": 20.0, "readings": 10000},
        "histogram": None,
        "load_ns": 2_000_000_000,
        "load_verify_ns": None,
        "peak_rss_bytes": 50_000_000,
        "loaded_rss_bytes": 40_000_000,
        "baseline_rss_bytes": 12_000_000,
        "final_rss_anon_bytes": 30_000_000,
        "final_rss_file_bytes": 8_000_000,
        "memory_floor": {"reads": 1000, "dependent_ns": 100.0, "independent_ns": 10.0},
        "static_bytes": 30_000_000,
        "static_file_bytes": 20_000_000,
        "draft_digest": digest,
        "build": {"compiler": "gcc 12.2.0", "cxx_flags": "-O3 -march=native"},
    }
    return {**fields, **changes}


def make_record(
    spec: RunSpec, measured: dict[str, Any] | None = None, failure: Failure | None = None, **changes: Any
) -> RunRecord:
    fields: dict[str, Any] = {
        "key": spec.key,
        "spec": spec,
        "status": "failed" if failure else "ok",
        "failure": failure,
        "measured": measured,
        "environment": {"git_commit": "0123456789abcdef", "git_dirty": False},
        "started_utc": "2026-01-01T00:00:00Z",
        "wall_s": 1.0,
    }
    return RunRecord(**{**fields, **changes})


def write_results(folder: Path, records: list[RunRecord], planned: list[str] | None = None) -> Path:
    """A results folder as `run_experiment` leaves it."""
    (folder / "runs").mkdir(parents=True)
    for record in records:
        write_record(folder / "runs", record)
    names = ("label", "rung", "group", "color", "marker", "ties")
    used = [name for name in STYLE if any(record.spec.variant == name for record in records)]
    (folder / "experiment.json").write_text(
        json.dumps(
            {
                "schema": 2,
                "experiment": {"name": "sample"},
                "overrides": {},
                "variants": {name: dict(zip(names, STYLE[name], strict=True)) for name in used},
                "keys": planned or [record.key for record in records],
            }
        )
    )
    (folder / "machine.json").write_text(
        json.dumps(
            {
                "cpu_model": "A CPU",
                "cpu_logical_total": 2,
                "ram_bytes": 8_000_000_000,
                "system": "Linux",
                "kernel": "6.1",
            }
        )
    )
    return folder
