"""Records and plans of schema 1 are read as schema 2: the same figures and series under the same keys."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from draft_ladder.base.errors import InputError
from draft_ladder.bench.records import load_plan, load_record, load_records
from draft_ladder.bench.stats import load_results

RESULTS = sorted(path.parent for path in (Path(__file__).parents[2] / "results").glob("*/*/experiment.json"))


def old(folder: Path) -> tuple[Path, dict[str, Any]]:
    """A committed record of schema 1."""
    for path in sorted((folder / "runs").glob("*.json")):
        content: dict[str, Any] = json.loads(path.read_text())
        if content["schema"] == 1:
            return path, content
    pytest.skip("no record of schema 1 is committed")


@pytest.mark.parametrize("folder", RESULTS, ids=lambda path: path.name)
def test_every_committed_record_is_read(folder: Path) -> None:
    records = load_records(folder / "runs")
    assert {record.key for record in records} == {path.stem for path in (folder / "runs").glob("*.json")}
    results = load_results(folder)
    assert results.missing_total == 0
    assert all(style["group"] in ("ladder", "ablations", "beyond") for style in results.variants.values())
    assert {(record.spec.rule, record.spec.engine) for record in records} == {("llama", "native")}


def test_a_record_keeps_its_key_and_gets_the_new_names() -> None:
    path, content = old(RESULTS[0])
    record = load_record(path)
    assert record.key == path.stem == record.spec.key_of_schema_1 != record.spec.key
    assert (record.spec.rule, record.spec.ties) == ("llama", content["spec"]["tie_class"])
    timing = content["spec"]["timing"].replace("section", "call")
    assert (record.spec.timing, record.measured and record.measured["timing"]) == (timing, timing)


@pytest.mark.parametrize("change", [{"tie_class": "other"}, {"n_draft": 5}, {"size_mb": 7.0}, {"rule": "x"}])
def test_a_doctored_old_record_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    path, content = old(RESULTS[0])
    copy = tmp_path / path.name
    copy.write_text(json.dumps({**content, "spec": {**content["spec"], **change}}))
    with pytest.raises(InputError):
        load_record(copy)


def test_another_rule_or_engine_has_no_key_of_schema_1() -> None:
    spec = load_record(old(RESULTS[0])[0]).spec
    assert spec.model_copy(update={"rule": "mine"}).key_of_schema_1 is None
    assert spec.model_copy(update={"engine": "python"}).key_of_schema_1 is None


def test_a_plan_of_schema_1_is_upgraded(tmp_path: Path) -> None:
    shutil.copy(RESULTS[0] / "experiment.json", tmp_path)
    before = json.loads((tmp_path / "experiment.json").read_text())
    after = load_plan(tmp_path / "experiment.json")
    assert (after["schema"], after["keys"]) == (2, before["keys"])
    for name, style in after["variants"].items():
        assert style["ties"] == before["variants"][name].get("tie_class", style["ties"])
        assert not {"kind", "tie_class"} & style.keys()
