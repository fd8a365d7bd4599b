"""The files of a commit, in a folder for a while: what was measured or written then beside what is now."""

from __future__ import annotations

import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from draft_ladder.base.errors import InputError


@contextmanager
def files_of(revision: str, path: str = ".", *, repository: Path = Path(), remedy: str) -> Iterator[Path]:
    """A folder with what the commit has at `path`. InputError where git knows no such commit or path."""
    if revision.startswith("-"):  # git would take it for an option, and some of its options write files
        raise InputError(f"{revision}:{path}", "is no commit", remedy)
    with tempfile.TemporaryDirectory(prefix="ladder-commit-") as name:
        archive, folder = Path(name) / "commit.tar", Path(name) / "files"
        command = ["git", "-C", str(repository), "archive", "--format=tar", f"--output={archive}"]
        try:
            done = subprocess.run([*command, revision, "--", path], capture_output=True)
        except FileNotFoundError as error:
            raise InputError("git", "is not installed", "install it") from error
        if done.returncode != 0:
            problem = " ".join(done.stderr.decode(errors="replace").split()) or "git archive failed"
            raise InputError(f"{revision}:{path}", problem, remedy)
        _extract(archive, folder)
        yield folder


def _extract(archive: Path, folder: Path) -> None:
    with tarfile.open(archive) as tar:
        # Python had no filter before 3.11.4, and warns from 3.12 on where none is named.
        if hasattr(tarfile, "data_filter"):
            tar.extractall(folder, filter="data")
        else:
            tar.extractall(folder)
