"""The stubs that the build makes of the helper modules say what the package's protocols say of them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from draft_ladder.base.native import native_root

PACKAGE = Path(__file__).parents[2] / "harness" / "draft_ladder"
PROTOCOLS = {
    "_builder": "BuilderModule",
    "_caches": "CachesModule",
    "_synthetic": "SyntheticModule",
}
STUBS = [native_root() / f"{module}.pyi" for module in PROTOCOLS]

pytestmark = pytest.mark.skipif(
    not all(stub.is_file() for stub in STUBS), reason="no stubs: install the package (make test does)"
)


def test_the_helper_modules_are_what_their_protocols_say(tmp_path: Path) -> None:
    for stub in STUBS:
        shutil.copy(stub, tmp_path)
    lines = [f"import {module}\nfrom draft_ladder.base import interfaces" for module in PROTOCOLS]
    lines += [f"{module}_is: interfaces.{protocol} = {module}" for module, protocol in PROTOCOLS.items()]
    (tmp_path / "use.py").write_text("\n".join(lines) + "\n")
    paths = os.pathsep.join([str(tmp_path), str(PACKAGE.parent)])
    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file=", "use.py"],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": paths, "MYPY_CACHE_DIR": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_the_package_says_that_it_is_typed() -> None:
    assert (PACKAGE / "py.typed").is_file()
