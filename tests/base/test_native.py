"""The C++ unit tests: configured, built and run as they are, once plain and once under the sanitizers."""

import json
import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = sorted(path.stem for path in (ROOT / "tests" / "native").glob("test_*.cpp"))
BUILDS = {"plain": [], "sanitized": ["-DLADDER_SANITIZE=ON", "-DCMAKE_BUILD_TYPE=Debug"]}


def _run(command: list[str], **environment: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment})
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def _build(mode: str) -> Path:
    """Build every program under build/ (kept there: a second run compiles only what changed)."""
    build = ROOT / "build" / f"native-tests-{mode}"
    configure = ["cmake", "-S", str(ROOT), "-B", str(build), "-DLADDER_NATIVE_TESTS=ON", *BUILDS[mode]]
    if not (build / "CMakeCache.txt").exists() and shutil.which("ninja"):
        configure += ["-G", "Ninja"]
    _run(configure)
    _run(["cmake", "--build", str(build), "-j", str(os.cpu_count() or 1)])
    return build / "tests" / "native"


@pytest.fixture(scope="session", params=BUILDS)
def programs(request: pytest.FixtureRequest) -> Path:
    if shutil.which("cmake") is None:
        pytest.skip("cmake is not on the path")
    return _build(request.param)


@pytest.mark.xdist_group("native")
@pytest.mark.parametrize("program", PROGRAMS)
def test_every_check_passes(programs: Path, program: str) -> None:
    lines = _run([str(programs / program)], ASAN_OPTIONS="allocator_may_return_null=1").splitlines()
    assert lines
    assert [line for line in lines if not line.startswith("ok ")] == []


@pytest.mark.parametrize(
    ("options", "recorded"),
    [
        (["-DLADDER_MARCH="], "-O3 -DNDEBUG"),
        (["-DLADDER_MARCH=x86-64", "-DCMAKE_CXX_FLAGS=-fno-plt"], "-fno-plt -O3 -DNDEBUG -march=x86-64"),
        (
            ["-DLADDER_MARCH=", "-DLADDER_SANITIZE=ON", "-DCMAKE_BUILD_TYPE=Debug"],
            "-g -fsanitize=address,undefined -fno-sanitize-recover=all -g",
        ),
    ],
)
def test_the_recorded_flags_are_those_of_the_build(tmp_path: Path, options: list[str], recorded: str) -> None:
    """`ladder rounds` hands them to a compiler: an empty -march= would be an error there."""
    if shutil.which("cmake") is None:
        pytest.skip("cmake is not on the path")
    offered = ["-DLADDER_REPLAY_PROGRAMS=ON", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", "-G", "Unix Makefiles"]
    _run(["cmake", "-S", str(ROOT), "-B", str(tmp_path), *offered, *options])
    commands = json.loads((tmp_path / "compile_commands.json").read_text())
    words = shlex.split(commands[0]["command"])
    assert f'-DLADDER_CXX_FLAGS="{recorded}"' in words
    assert set(recorded.split()) <= set(words)
