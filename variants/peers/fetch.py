"""Fetches the source archive of every peer by name and version, and unpacks it: `make peers` calls this.

Usage: python variants/peers/fetch.py [--into FOLDER] [NAME ...]

Nothing of a peer lies in this repository. Each `variant.toml` below this folder names a package of the Python
index and a version; its source archive is downloaded with pip into the cache folder (LADDER_CACHE_DIR, else
~/.cache/draft-ladder), under peers/, and unpacked there as PACKAGE-VERSION/. What is already there is left
alone. A package that cannot be had is reported and skipped: its peers then say so themselves, and the others
go on.

pip asks an archive's build system for metadata even if it is only to download it, which for some of these
packages means installing gigabytes first. So the build systems are replaced by a stand-in that hands out the
metadata that already lies in the archive; no code of the package runs.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
TIMEOUT_S = 600
LONGEST_LINE = 200

# The build systems that the packages name, each a module that pip imports to ask for metadata.
BUILD_SYSTEMS = (
    "setuptools.build_meta",
    "scikit_build_core.build",
    "hatchling.build",
    "flit_core.buildapi",
    "maturin",
)

STAND_IN = """
import os
import shutil
import sys
from email.parser import HeaderParser

def get_requires_for_build_wheel(config_settings=None):
    return []

def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    with open("PKG-INFO", encoding="utf-8", errors="replace") as file:
        head = HeaderParser().parse(file, headersonly=True)
    folder = head["Name"].replace("-", "_") + "-" + head["Version"] + ".dist-info"
    os.makedirs(os.path.join(metadata_directory, folder))
    shutil.copy("PKG-INFO", os.path.join(metadata_directory, folder, "METADATA"))
    return folder

__legacy__ = sys.modules[__name__]
"""


def main() -> int:
    """Fetch all that is wanted; 1 if one of them could not be had."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", help="peers to fetch for (default: all)")
    parser.add_argument("--into", type=Path, default=default_folder(), help="where the sources are kept")
    arguments = parser.parse_args()
    arguments.into.mkdir(parents=True, exist_ok=True)
    failed = 0
    for package, version in wanted(arguments.names):
        target = arguments.into / f"{package}-{version}"
        if target.is_dir():
            print(f"{package} {version}: there already")
            continue
        problem = fetch(package, version, target)
        print(f"{package} {version}: {problem or 'fetched'}")
        failed += problem is not None
    return 1 if failed else 0


def default_folder() -> Path:
    """Where the cache folder keeps the peers' sources."""
    cache = os.environ.get("LADDER_CACHE_DIR") or Path.home() / ".cache" / "draft-ladder"
    return Path(os.environ.get("LADDER_PEERS") or Path(cache).expanduser() / "peers")


def wanted(names: list[str]) -> list[tuple[str, str]]:
    """Package and version of each peer asked for, each pair once."""
    pairs = []
    for file in sorted(HERE.glob("*/variant.toml")):
        if names and file.parent.name not in names:
            continue
        content = tomllib.loads(file.read_text(encoding="utf-8"))
        if (pair := (content["package"], content["version"])) not in pairs:
            pairs.append(pair)
    return pairs


def fetch(package: str, version: str, target: Path) -> str | None:
    """Download and unpack one archive; why not, if it cannot be had. `target` appears whole or not at all."""
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".fetch-") as temporary:
        folder = Path(temporary)
        stand_ins = folder / "build-systems"
        write_stand_ins(stand_ins)
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "--quiet",
            "--disable-pip-version-check",
            "--no-deps",
        ]
        command += [
            "--no-binary",
            ":all:",
            "--no-build-isolation",
            "--dest",
            str(folder),
            f"{package}=={version}",
        ]
        try:
            done = subprocess.run(
                command,
                env={**os.environ, "PYTHONPATH": str(stand_ins)},
                capture_output=True,
                text=True,
                timeout=TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"not fetched: no answer after {TIMEOUT_S} s; try again"
        archives = list(folder.glob("*.tar.gz"))
        if done.returncode != 0 or len(archives) != 1:
            return f"not fetched: {last_error(done.stderr)}"
        return unpack(archives[0], target)


def write_stand_ins(folder: Path) -> None:
    """The stand-in under the name of every build system."""
    for name in BUILD_SYSTEMS:
        path = folder.joinpath(*name.split(".")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        for package in path.relative_to(folder).parents[:-1]:
            (folder / package / "__init__.py").touch()
        path.write_text(STAND_IN, encoding="utf-8")


def unpack(archive: Path, target: Path) -> str | None:
    """The archive's one folder becomes `target`."""
    inside = archive.parent / "unpacked"
    try:
        with tarfile.open(archive) as tar:
            tar.extractall(inside, filter="data")
    except (tarfile.TarError, OSError) as error:
        return f"not unpacked: {error}"
    folders = list(inside.iterdir())
    if len(folders) != 1:
        return f"not unpacked: the archive holds {len(folders)} folders, not one"
    folders[0].rename(target)
    return None


def last_error(text: str) -> str:
    """The line of pip's output that says what was wrong."""
    lines = [line for line in text.splitlines() if line.strip()]
    errors: Iterator[str] = (line for line in lines if line.startswith("ERROR:"))
    line = next(errors, lines[-1] if lines else "nothing was said").removeprefix("ERROR: ")
    return line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]} ..."


if __name__ == "__main__":
    raise SystemExit(main())
