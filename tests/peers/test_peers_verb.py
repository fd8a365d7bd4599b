"""`ladder peers` on the small config: records, table and charts, once; and one line for what is wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from native_modules import ABSENT, variants

pytestmark = pytest.mark.skipif(not variants(), reason=ABSENT)
ROOT = Path(__file__).parents[2]
CONFIG = ROOT / "configs" / "peers-smoke.toml"
OURS = '["reference_access", "summary_index"]'


def ladder(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from draft_ladder.cli import main; main()", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def peers(folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    places = ["--results", "results", "--plots", "plots", "--machine", "here", "--cache-dir", "cache"]
    return ladder(folder, "peers", str(CONFIG), *places, "--set", f"variants={OURS}", *more)


def test_the_small_config_is_measured_once(tmp_path: Path) -> None:
    first = peers(tmp_path, "--json")
    assert first.returncode == 0, first.stderr
    assert json.loads(first.stdout)["runs_total"] == 2 * 2 * 2
    folder = tmp_path / "results" / "here" / "peers-smoke"
    records = sorted((folder / "runs").iterdir())
    before = [path.stat().st_mtime_ns for path in records]
    content = [json.loads(path.read_text()) for path in records]
    assert {record["status"] for record in content} == {"ok"}
    assert {record["draft_check"] for record in content} == {"unchecked"}
    page, table = (folder / "peers.md").read_bytes(), (folder / "peers.csv").read_bytes()
    assert b"edits" in page
    charts = {path.name for path in (tmp_path / "plots" / "here" / "peers-smoke").glob("*.svg")}
    assert charts >= {"frontier_chain_all.svg", "goodput_chain_none_n8.svg"}
    second = peers(tmp_path)
    assert second.returncode == 0
    assert [path.stat().st_mtime_ns for path in records] == before
    assert ((folder / "peers.md").read_bytes(), (folder / "peers.csv").read_bytes()) == (page, table)


@pytest.mark.parametrize(
    "wrong",
    [
        'replay.files=["nowhere.jsonl"]',
        'replay.kind="text"',
        'variants=["nobody"]',
        "n_draft=0",
        'history=["some"]',
        'costs=["none"]',
        'sweeps=[{variant="summary_index", axis="none"}]',
    ],
)
def test_what_is_wrong_with_the_config_is_one_line(tmp_path: Path, wrong: str) -> None:
    found = peers(tmp_path, "--set", wrong)
    assert found.returncode == 2, found.stderr
    assert "Traceback" not in found.stderr
    assert found.stderr.strip().splitlines()[-1].startswith("ladder: ")
    assert not (tmp_path / "results").exists()


def test_list_names_where_peers_come_from(tmp_path: Path) -> None:
    listed = ladder(tmp_path, "list", "--json")
    known = {variant["name"]: variant for variant in json.loads(listed.stdout)}
    if "llama_ngram_cache" not in known:
        pytest.skip("the folders of the peers are not installed")
    for variant in known.values():
        if variant["group"] == "peers":
            assert all(variant[key] for key in ("package", "version", "licence", "source"))
