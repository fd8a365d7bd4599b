"""A mapped cache that is cut shorter under a running drafter: the end, with a line that names the file."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from draft_ladder.bench.launch import _judge
from native_modules import ABSENT, variants
from specification import write_static

CHILD = """
import os, struct, sys
from native_modules import variants
(variant,) = [v for v in variants() if v.static_format == "summary"]
source, target = sys.argv[1:]
variant.module.convert_static(source, target)
drafter = variant.drafter()
drafter.load(target)
os.truncate(target, 0)
drafter.replay(struct.pack("<3000i", *([7, 8, 9] * 1000)), 64, 3)
"""


@pytest.mark.skipif(not any(v.static_format == "summary" for v in variants()), reason=ABSENT)
def test_a_cache_cut_under_a_replay_is_named(tmp_path: Path) -> None:
    source, target = tmp_path / "static.bin", tmp_path / "static.summary"
    source.write_bytes(write_static({(a, a + 1): {a + 2: 5} for a in range(4000)}))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    run = subprocess.run(
        [sys.executable, "-c", CHILD, str(source), str(target)],
        capture_output=True,
        env=environment,
        timeout=600,
        check=False,
    )
    assert run.returncode == -signal.SIGBUS
    line = run.stderr.decode().splitlines()[-1]
    assert line.startswith(f"{target}: ")
    assert "; " in line
    answer, failure = _judge(run.returncode, run.stdout, run.stderr, None, None)
    assert answer is None
    assert failure is not None
    assert (failure.reason, failure.detail) == ("file changed", line)
