"""Builds and installs what the Python peers import, after fetch.py: `make peers` calls this.

Usage: python variants/peers/build.py [--into FOLDER]

Arctic's extension module is compiled with its own CMakeLists.txt, in the folder of its unpacked source. A
peer that cannot be built is reported; the others go on.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

from fetch import default_folder, last_error

ARCTIC = "arctic-inference-0.3.0"
INSTALLED = ("torch==2.13.0", "numba", "huggingface_hub", "tokenizers", "safetensors", "regex", "pyyaml")


def main() -> int:
    """Do both; 1 if one of them failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--into", type=Path, default=default_folder(), help="where the sources are kept")
    folder = parser.parse_args().into
    problems = {"arctic-inference's extension": build_arctic(folder / ARCTIC), "packages": install()}
    for what, problem in problems.items():
        print(f"{what}: {problem or 'there'}")
    return 1 if any(problems.values()) else 0


def build_arctic(source: Path) -> str | None:
    """The module that its Python cache imports; why not, if it cannot be built."""
    target = source / "arctic_inference" / "suffix_decoding"
    if not source.is_dir():
        return "its source is not there"
    if any(target.glob("_C.*")):
        return None
    build = source / "build"
    cmake = shutil.which("cmake") or "cmake"
    configure = [cmake, "-S", str(source / "csrc" / "suffix_decoding"), "-B", str(build)]
    configure += ["-DCMAKE_BUILD_TYPE=Release", f"-DPython_EXECUTABLE={sys.executable}"]
    for command in (configure, [cmake, "--build", str(build)]):
        if (problem := run(command)) is not None:
            return problem
    for module in build.glob("_C.*"):
        shutil.copy(module, target)
    return None


def install() -> str | None:
    """What transformers and vLLM's file import."""
    return run([sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *INSTALLED])


def run(command: list[str]) -> str | None:
    """None, or what it ended with."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else last_error(done.stderr or done.stdout)


if __name__ == "__main__":
    raise SystemExit(main())
