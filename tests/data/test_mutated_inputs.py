"""Thousands of mutated files over all readers: no traceback, no hang, nothing accepted that it is not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from native_modules import ABSENT, variants

pytest.importorskip("tokenizers", reason="tokenizers (extra `huggingface`) is not installed")
CHILD = Path(__file__).parents[1] / "mutated_child.py"


@pytest.mark.skipif(not variants(), reason=ABSENT)
@pytest.mark.parametrize(
    ("n", "seed"), [(1_000, 1), pytest.param(10_000, 2, marks=pytest.mark.slow)], ids=["1000", "10000"]
)
def test_mutated_inputs(n: int, seed: int, tmp_path: Path) -> None:
    path = os.pathsep.join([str(CHILD.parent / "data"), *(entry for entry in sys.path if entry)])
    run = subprocess.run(
        [sys.executable, str(CHILD), str(n), str(seed), str(tmp_path)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
        timeout=3600,
        check=False,
    )
    last = (tmp_path / "last").read_bytes()[:400] if (tmp_path / "last").exists() else b""
    assert run.returncode == 0, f"the child died ({run.returncode}) at {last!r}: {run.stderr[-2000:]}"
    outcome = json.loads(run.stdout)
    assert outcome["findings"] == []
    counted = outcome["counts"].values()
    assert sum(one["accepted"] + one["refused"] for one in counted) == n
    assert all(one["refused"] for one in counted)  # the damage was seen
