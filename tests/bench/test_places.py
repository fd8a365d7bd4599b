"""A results folder stays of one place: another machine's or setting's run is refused before it measures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from draft_ladder.base import host
from draft_ladder.base.errors import ExitCode, InputError
from draft_ladder.bench.places import refuse_elsewhere, write_machine
from draft_ladder.bench.records import load_records
from draft_ladder.bench.runner import run_experiment
from runner_kit import Watcher, real_variants, small_experiment, small_inputs, small_plan

CHANGES: list[dict[str, Any]] = [
    {"kernel": "another"},
    {"cpu_model": "another"},
    {"ram_bytes": 1},
    {"allocator_variables": {"MALLOC_ARENA_MAX": "1"}},
    {"transparent_hugepage": "always"},
    {"affinity": [99]},
    {"memory_limit_bytes": 10**9},
]


def elsewhere(monkeypatch: pytest.MonkeyPatch, change: dict[str, Any]) -> None:
    here = host.likeness()
    for module in ("base.host", "bench.environment"):
        monkeypatch.setattr(f"draft_ladder.{module}.likeness", lambda: {**here, **change})


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: next(iter(change)))
def test_machine_json_is_never_another_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any]
) -> None:
    write_machine(tmp_path)
    before = (tmp_path / "machine.json").read_bytes()
    elsewhere(monkeypatch, change)
    for act in (write_machine, refuse_elsewhere):
        with pytest.raises(InputError, match=next(iter(change))):
            act(tmp_path)
    assert (tmp_path / "machine.json").read_bytes() == before
    write_machine(tmp_path / "own")
    assert json.loads((tmp_path / "own" / "machine.json").read_bytes()).items() >= change.items()


def test_a_resumed_run_elsewhere_is_refused_and_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_variants()
    inputs, folder = small_inputs(tmp_path / "inputs"), tmp_path / "results"

    def run(repeats: int, force: bool = False) -> ExitCode:
        experiment = small_experiment(repeats=repeats, sizes_mb=[0])
        return run_experiment(experiment, small_plan(experiment, inputs), folder, Watcher(), force=force)

    assert run(1) == ExitCode.OK
    records = load_records(folder / "runs")
    (likeness,) = {record.environment["likeness"] for record in records}
    assert len(likeness) == 16
    before = {path: path.read_bytes() for path in folder.rglob("*.json")}
    elsewhere(monkeypatch, {"allocator_variables": {"MALLOC_ARENA_MAX": "1"}})
    for force in (False, True):
        with pytest.raises(InputError, match=r"allocator_variables.*--machine"):
            run(2, force)
    assert {path: path.read_bytes() for path in folder.rglob("*.json")} == before
    # Records say it too, where the machine.json was lost.
    (folder / "machine.json").unlink()
    with pytest.raises(InputError, match="allocator_variables"):
        run(2)


def test_an_older_record_has_a_digest_of_what_it_knows(tmp_path: Path) -> None:
    committed = Path(__file__).parents[2] / "results" / "amd-epyc-2c-linux"
    records = load_records(committed / "cumulative" / "runs")
    assert len({record.likeness for record in records}) == 1
    assert all(record.likeness and "likeness" not in record.environment for record in records)
    bare = records[0].model_copy(
        update={"environment": {}, "measured": None, "spec": records[0].spec.model_copy(update={"cpu": None})}
    )
    assert bare.likeness is None
