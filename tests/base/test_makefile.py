"""What `make` says of an environment that cannot work, before it tries."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def make(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["make", *arguments], cwd=folder, capture_output=True, text=True)


@pytest.fixture
def moved(tmp_path: Path) -> Path:
    """A checkout whose environment was made elsewhere."""
    if shutil.which("make") is None:
        pytest.skip("make is not installed")
    for name in ("Makefile", "pyproject.toml", "CMakeLists.txt"):
        shutil.copy(ROOT / name, tmp_path)
    for name in ("native", "variants", ".venv"):
        (tmp_path / name).mkdir()
    (tmp_path / ".venv" / ".installed").write_text("/an/older/place\n")
    return tmp_path


def test_a_moved_checkout_is_told_what_to_do(moved: Path) -> None:
    done = make(moved, "setup")
    assert done.returncode == 2
    assert "/an/older/place" in done.stderr
    assert "make clean" in done.stderr
    assert make(moved, "help").returncode == 0
    assert make(moved, "clean").returncode == 0
    assert not (moved / ".venv").exists()


def test_an_environment_without_pip_is_told_what_to_do(moved: Path) -> None:
    (moved / ".venv" / ".installed").unlink()
    python = moved / ".venv" / "bin" / "python"
    python.parent.mkdir()
    python.write_text("#!/bin/sh\nexit 1\n")
    python.chmod(0o755)
    done = make(moved, "setup")
    assert done.returncode == 2
    assert "pip" in done.stderr
    assert "make clean" in done.stderr
